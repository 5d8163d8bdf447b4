import assert from "node:assert/strict";
import { modelSampling } from "latentkit";
import { firstWeight, secondWeight, signalOf } from "#src/tensor/sampling/noise-level.js";

/** Integral of exp(s - h) * g(s / h) over s from 0 to h, by Simpson's rule. */
function integral(h: number, g: (share: number) => number): number {
  const parts = 4000;
  let sum = 0;
  for (let i = 0; i <= parts; i++) {
    const weight = i === 0 || i === parts ? 1 : 2 + 2 * (i % 2);
    sum += weight * Math.exp((h * i) / parts - h) * g(i / parts);
  }
  return (sum * h) / (3 * parts);
}

describe("weights of exponential integrators", () => {
  for (const h of [-1.5, -1e-2, -1e-4, 1e-6, 9.9e-5, 1.01e-4, 1e-3, 0.3, 2, 8]) {
    it(`h ${h}: the integrals of a constant and of a line`, () => {
      const [first, second] = [integral(h, () => 1), integral(h, (share) => share)];
      assert.ok(Math.abs(firstWeight(h) - first) <= 1e-11 * Math.abs(first), `${firstWeight(h)}, expected ${first}`);
      assert.ok(Math.abs(secondWeight(h) - second) <= 1e-11 * Math.abs(second), `${secondWeight(h)} and ${second}`);
    });
  }

  it("a way of no length has no weights", () => {
    assert.deepEqual([firstWeight(0) + 0, secondWeight(0)], [0, 0]);
  });
});

describe("signalOf", () => {
  it("is 1 - sigma of a flow and 1 of others", () => {
    assert.equal(signalOf(modelSampling("sd3"), 0.25), 0.75);
    assert.equal(signalOf(modelSampling("sd15"), 0.25), 1);
  });
});
