import assert from "node:assert/strict";
import { layoutsOf } from "#src/host/preview/landscape.js";
import { type Contents, PIGMENTS, type Pigment } from "#src/host/preview/scene.js";

const NOTHING: Contents = { water: false, trees: false, stars: false, animal: false };
const amountOf = (layout: readonly Float64Array[], pigment: Pigment): number =>
  layout[PIGMENTS.indexOf(pigment)]!.reduce((sum, amount) => sum + amount, 0);

describe("the preview model's landscapes", () => {
  for (const [rows, columns] of [
    [64, 64],
    [24, 60],
    [3, 2],
    [1, 1],
  ] as const) {
    it(`cover each of ${rows} x ${columns} cells once`, () => {
      for (const contents of [NOTHING, { water: true, trees: true, stars: true, animal: true }]) {
        for (const layout of layoutsOf(contents, rows, columns)) {
          for (let i = 0; i < rows * columns; i++) {
            const amounts = layout.map((plane) => plane[i]!);
            assert.ok(Math.abs(amounts.reduce((sum, amount) => sum + amount, 0) - 1) < 1e-9);
            assert.ok(amounts.every((amount) => amount >= 0));
          }
        }
      }
    });
  }

  const parts: readonly (readonly [keyof Contents, Pigment])[] = [
    ["water", "water"],
    ["trees", "tree"],
    ["stars", "star"],
    ["animal", "animal"],
  ];
  for (const [part, pigment] of parts) {
    it(`have ${part} if the prompt does`, () => {
      for (const layout of layoutsOf(NOTHING, 64, 64)) assert.equal(amountOf(layout, pigment), 0);
      for (const layout of layoutsOf({ ...NOTHING, [part]: true }, 64, 64)) assert.ok(amountOf(layout, pigment) > 5);
    });
  }

  it("mirror the light in water, and differ from each other", () => {
    const [dry, wet] = [layoutsOf(NOTHING, 64, 64), layoutsOf({ ...NOTHING, water: true }, 64, 64)];
    for (const [k, layout] of wet.entries()) assert.ok(amountOf(layout, "light") > 1.1 * amountOf(dry[k]!, "light"));
    assert.equal(new Set(dry.map((layout) => amountOf(layout, "far"))).size, dry.length);
  });

  it("are one colour if there is none", () => {
    const [layout, ...others] = layoutsOf(undefined, 4, 5);
    assert.equal(others.length, 0);
    assert.equal(amountOf(layout!, "skyTop"), 20);
  });
});
