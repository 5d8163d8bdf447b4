import assert from "node:assert/strict";
import { type LayerWeights, layerWeights, listedWeights, type WeightType } from "#src/nodes/ipadapter/weights.js";
import { adapterLayers } from "../../../helpers/models/golden-adapters.js";

type Effective = number | readonly [number, "swapped"];

const { weights } = adapterLayers();
const table = weights.table as Readonly<Record<string, readonly Effective[]>>;

/** The weights of one case of the table, all of which have weight 2. */
function weightsOf(name: string): readonly LayerWeights[] {
  const [family, node, type] = name.split("/") as [string, string, string];
  const isSdxl = family === "sdxl";
  switch (node) {
    case "IPAdapterAdvanced":
      return [layerWeights(type as WeightType, 2, isSdxl)];
    case "IPAdapterPreciseStyleTransfer":
      return [layerWeights("style transfer precise", 2, isSdxl, { boost: 0.5 })];
    case "IPAdapterPreciseComposition":
      return [layerWeights("composition precise", 2, isSdxl, { boost: 0.5 })];
    default:
      return [
        layerWeights(type === "expand" ? "strong style transfer" : "style transfer", 2, isSdxl),
        layerWeights("composition", 0.5, isSdxl),
      ];
  }
}

const close = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-6;

describe("layerWeights", () => {
  it("has a table of the reference for both families", () => assert.equal(Object.keys(table).length, 36));

  for (const [name, expected] of Object.entries(table))
    it(`${name} as the reference`, () => {
      const all = weightsOf(name);
      for (const [index, effective] of expected.entries()) {
        const sum = (side: keyof LayerWeights): number => all.reduce((total, one) => total + one[side][index]!, 0);
        const [value, isSwapped] = typeof effective === "number" ? [effective, false] : [effective[0], true];
        assert.ok(close(sum("plain"), isSwapped ? 0 : value), `${index}: ${sum("plain")}`);
        assert.ok(close(sum("swapped"), isSwapped ? value : 0), `${index}: ${sum("swapped")}`);
      }
      assert.equal(all[0]!.plain.length, expected.length);
    });
});

describe("listedWeights", () => {
  it("multiplies the weight by the numbers that a text lists", () => {
    const { plain, swapped } = listedWeights("0:0.5, 3:1.2, 4:-0.4,6: 1", 2, true)!;
    assert.deepEqual(plain, [1, 0, 0, 2.4, -0.8, 0, 2, 0, 0, 0, 0]);
    assert.ok(swapped.every((weight) => weight === 0));
  });

  it("refuses other texts and transformers that a family lacks", () => {
    for (const text of ["3", "a:1", "11:1", "3:1,", "3:1e9", "3:NaN", "1:0x2"])
      assert.equal(listedWeights(text, 1, true), undefined, text);
    assert.equal(listedWeights("15:1", 1, false)!.plain[15], 1);
    assert.equal(listedWeights("16:1", 1, false), undefined);
  });
});
