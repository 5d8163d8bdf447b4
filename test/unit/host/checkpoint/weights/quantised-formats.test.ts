import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Network } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readSafetensors, type StoredTensor, toTensor } from "#src/io/safetensors/read.js";
import { refuses } from "../../../../helpers/errors.js";
import { root, suiteFolder } from "../../../../helpers/folders.js";
import { goldenBytes } from "../../../../helpers/golden-file.js";
import { computedFromPacked } from "../../../../helpers/models/packed-graph.js";
import { f32, type RawTensor, weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

const FOLDER = join(root, "test/golden/models-flux/quant");
/** Rows and columns of all layers, without padding. */
const [ROWS, COLUMNS] = [40, 128];

describe("weights of 4 and 8 bits with scales of their own", () => {
  const folder = suiteFolder();
  const layers = readSafetensors(goldenBytes(join(FOLDER, "layers.safetensors"))!).tensors;
  const values = readSafetensors(goldenBytes(join(FOLDER, "values.safetensors"))!).tensors;
  const x = toTensor(layers.get("x")!);
  let weights: WeightMap;
  before(async () => {
    const path = join(folder(), "layers.safetensors");
    writeFileSync(path, goldenBytes(join(FOLDER, "layers.safetensors"))!);
    weights = (await weightFile(path)).weights;
  });

  const LAYERS = [
    ["mxfp8", "MXFP8", 64, 0],
    ["nvfp4", "NVFP4", 48, 0],
    ["nf4", "NF4", 40, 1e-7],
    ["nf4n", "NF4", 40, 1e-7],
  ] as const;

  it("are read with their types and shapes, and nothing stays beside them", () => {
    for (const [layer, type, rows] of LAYERS) {
      const { dtype, shape } = weights.get(`${layer}.weight`)!;
      assert.deepEqual([dtype, shape], [type, [rows, COLUMNS]]);
    }
    assert.deepEqual([...weights.keys()].sort(), ["fp8.weight", ...LAYERS.map(([l]) => `${l}.weight`), "x"].sort());
  });

  for (const [layer, , rows, tolerance] of LAYERS) {
    it(`are expanded to the golden values: ${layer}`, async () => {
      const build = ({ graph, ...network }: Network): void =>
        graph.output(network.weight(`${layer}.weight`, [rows, COLUMNS]), "out", "float", [rows, COLUMNS]);
      const { out } = await computedFromPacked(folder(), weights, build, {});
      const expected = toTensor(values.get(`${layer}.weight`)!).data;
      const own = out!.data.subarray(0, ROWS * COLUMNS);
      if (tolerance === 0) assert.deepEqual(own, expected);
      else for (const [i, value] of expected.entries()) assert.ok(Math.abs(own[i]! - value) <= tolerance);
    });

    it(`have the product of the golden values: ${layer}`, async () => {
      let isPacked = false;
      const build = (network: Network): void => {
        const { graph } = network;
        const input = graph.input("x", "float", ["M", COLUMNS]);
        const product = network.quantisedProduct(`${layer}.weight`, [rows, COLUMNS], input);
        isPacked = product !== undefined;
        const whole = () => graph.node("Transpose", [network.weight(`${layer}.weight`, [rows, COLUMNS])]);
        graph.output(product ?? graph.node("MatMul", [input, whole()]), "out", "float", ["M", rows]);
      };
      const { out } = await computedFromPacked(folder(), weights, build, { x });
      assert.equal(isPacked, layer !== "mxfp8");
      const weight = toTensor(values.get(`${layer}.weight`)!).data;
      const expected: number[] = [];
      for (let m = 0; m < x.shape[0]!; m++)
        for (let n = 0; n < ROWS; n++) {
          let sum = 0;
          for (let k = 0; k < COLUMNS; k++) sum += x.data[m * COLUMNS + k]! * weight[n * COLUMNS + k]!;
          expected.push(sum);
        }
      const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      for (const [i, value] of expected.entries()) {
        const actual = out!.data[Math.floor(i / ROWS) * rows + (i % ROWS)]!;
        assert.ok(Math.abs(actual - value) <= 1e-6 * largest, `${i}: ${actual} is not ${value}`);
      }
    });
  }

  describe("are refused", () => {
    const raw = ({ dtype, shape, bytes }: StoredTensor): RawTensor => ({ dtype, shape, bytes });
    /** A file with the tensors of one layer, of which some are others, or absent. */
    const opened = (layer: string, changes: Readonly<Record<string, RawTensor | undefined>>) => {
      const own = [...layers]
        .filter(([key]) => key.startsWith(`${layer}.`))
        .map(([key, one]) => [key, raw(one)] as const);
      const all = { ...Object.fromEntries(own), ...changes };
      const kept = Object.entries(all).filter((entry): entry is [string, RawTensor] => entry[1] !== undefined);
      return weightFile(writeWeights(join(folder(), "bad.safetensors"), Object.fromEntries(kept)));
    };
    const text = (value: object): RawTensor => {
      const bytes = Buffer.from(JSON.stringify(value));
      return { dtype: "U8", shape: [bytes.length], bytes };
    };
    const bytes = (count: number): RawTensor => ({ dtype: "U8", shape: [count], bytes: new Uint8Array(count) });
    const STATE = "nf4.weight.quant_state.bitsandbytes__nf4";
    const NESTED = "nf4n.weight.quant_state.bitsandbytes__nf4";
    const state = { quant_type: "nf4", blocksize: 64, shape: [ROWS, COLUMNS] };
    type Case = readonly [title: string, layer: string, changes: Record<string, RawTensor | undefined>, RegExp];
    const cases: readonly Case[] = [
      [
        "mxfp8 without scales",
        "mxfp8",
        { "mxfp8.weight_scale": undefined },
        /512 scales of "mxfp8.weight" in U8, received none/,
      ],
      ["mxfp8 with too few scales", "mxfp8", { "mxfp8.weight_scale": bytes(4) }, /received U8 \[4\]/],
      [
        "mxfp8 of other bytes",
        "mxfp8",
        { "mxfp8.weight": { ...bytes(64 * 128), shape: [64, 128] } },
        /of F8_E4M3 with rows/,
      ],
      [
        "nvfp4 without a second factor",
        "nvfp4",
        { "nvfp4.weight_scale_2": undefined },
        /"nvfp4.weight_scale_2" of one number/,
      ],
      ["nvfp4 with two second factors", "nvfp4", { "nvfp4.weight_scale_2": f32([2]) }, /received F32 \[2\]/],
      [
        "nf4 without magnitudes",
        "nf4",
        { "nf4.weight.absmax": undefined },
        /"nf4.weight.absmax" of 80 values in F32, received none/,
      ],
      ["nf4 without a table", "nf4", { "nf4.weight.quant_map": undefined }, /"nf4.weight.quant_map" of 16 values/],
      [
        "nf4 of another shape",
        "nf4",
        { [STATE]: text({ ...state, shape: [41, 128] }) },
        /2624 bytes of "nf4.weight", received 2560/,
      ],
      [
        "nf4 of a shape too large",
        "nf4",
        { [STATE]: text({ ...state, shape: [2 ** 40, 2 ** 40] }) },
        /bytes of "nf4.weight"/,
      ],
      ["nf4 in groups of none", "nf4", { [STATE]: text({ ...state, blocksize: 0 }) }, /a shape that its groups divide/],
      ["nf4 in odd groups", "nf4", { [STATE]: text({ ...state, blocksize: 5 }) }, /a shape that its groups divide/],
      [
        "nested magnitudes without an offset",
        "nf4n",
        { [NESTED]: text({ ...state, nested_blocksize: 256 }) },
        /with nested_blocksize and nested_offset/,
      ],
      [
        "nested magnitudes without a table",
        "nf4n",
        { "nf4n.weight.nested_quant_map": undefined },
        /"nf4n.weight.nested_quant_map" of 256/,
      ],
    ];
    for (const [title, layer, changes, pattern] of cases)
      it(title, () => refuses(opened(layer, changes), "model.invalid", pattern));

    it("other types and other tables, as what is not known", async () => {
      const fp4 = { [STATE]: text({ ...state, quant_type: "fp4" }) };
      await refuses(opened("nf4", fp4), "model.unsupported", /of the type nf4, received "fp4"/);
      const table = { "nf4.weight.quant_map": f32([16]) };
      await refuses(opened("nf4", table), "model.unsupported", /the values of NF4 in "nf4.weight.quant_map"/);
    });
  });
});
