import assert from "node:assert/strict";
import { modelSampling } from "latentkit";
import { ancestral, ancestral32, ancestralOf } from "#src/tensor/sampling/noise-level.js";

const near = (value: number, expected: number, tolerance: number) =>
  assert.ok(Math.abs(value - expected) <= tolerance, `${value}, expected ${expected}`);

const STEPS: [sigma: number, next: number][] = [
  [14.6, 7],
  [5, 4.9],
  [1, 0.1],
  [0.2, 0.029],
];

describe("ancestral", () => {
  for (const step of [ancestral, ancestral32]) {
    it(`${step.name}: eta 0 steps to the next level and adds nothing`, () => {
      assert.deepEqual(step(5, 3, 0), { down: 3, up: 0 });
    });

    it(`${step.name}: both variances sum to that of the next level, eta 1 goes down to next^2 / sigma`, () => {
      for (const [sigma, next] of STEPS) {
        for (const eta of [0.3, 0.7, 1]) {
          const { down, up } = step(sigma, next, eta);
          near(down * down + up * up, next * next, 1e-6 * next * next);
        }
        near(step(sigma, next, 1).down, (next * next) / sigma, 1e-5 * next);
      }
    });

    it(`${step.name}: the last step, a sigma that rises and an infinite one are all new noise`, () => {
      assert.deepEqual(step(5, 0, 1), { down: 0, up: 0 });
      assert.deepEqual(step(3, 5, 1), { down: 0, up: 5 });
      assert.deepEqual(step(Number.POSITIVE_INFINITY, 5, 0.5), { down: 0, up: 5 });
    });
  }

  it("ancestral32 loses the digits that the reference loses, ancestral does not", () => {
    const [sigma, next] = [14.614640235900879, 0.029167160391807556];
    near(ancestral32(sigma, next, 1).down, 5.81037e-5, 1e-9);
    near(ancestral(sigma, next, 1).down, 5.82103e-5, 1e-9);
  });
});

describe("ancestralOf", () => {
  const flow = modelSampling("sd3");

  it("a flow's step keeps signal and noise of the next level", () => {
    for (const eta of [0, 0.4, 1]) {
      const { down, up, scale } = ancestralOf(flow, 0.8, 0.5, eta);
      near((1 - down) * scale, 0.5, 1e-12);
      near((down * scale) ** 2 + up ** 2, 0.25, 1e-12);
      near(down, 0.5 * (1 - 0.375 * eta), 1e-12);
    }
  });

  it("other models' steps are ancestral32", () => {
    assert.deepEqual(ancestralOf(modelSampling("sd15"), 5, 3, 0.5), { ...ancestral32(5, 3, 0.5), scale: 1 });
  });

  it("a flow whose sigmas rise is refused", () => {
    assert.throws(() => ancestralOf(flow, 0.5, 0.8, 1), { code: "value.out-of-range" });
    assert.throws(() => ancestralOf(flow, 0.8, 0.5, Number.NaN), { code: "value.out-of-range" });
  });
});
