import assert from "node:assert/strict";
import { betaIndices } from "#src/tensor/sampling/spaced-sigmas.js";

/** Indices of scipy's beta.ppf(1 - i / steps, alpha, beta) * (size - 1), rounded to even, repeats dropped. */
const SCIPY: [size: number, steps: number, alpha: number, beta: number, indices: number[]][] = [
  [1000, 12, 0.6, 0.6, [999, 970, 908, 823, 724, 614, 500, 385, 275, 176, 91, 29]],
  [1000, 7, 1, 1, [999, 856, 714, 571, 428, 285, 143]],
  [1000, 9, 0.3, 2.5, [999, 312, 169, 93, 48, 22, 8, 2, 0]],
  [1000, 8, 5, 0.5, [999, 996, 988, 974, 952, 920, 869, 780]],
  [10000, 6, 0.6, 0.9, [9999, 7786, 5517, 3479, 1793, 569]],
  [1000, 5, 50, 50, [999, 542, 512, 487, 457]],
  [1000, 6, 30, 0.05, [999, 998]],
  [1000, 6, 0.01, 20, [999, 0]],
  [1000, 5, 0.01, 0.01, [999, 0]],
];

describe("betaIndices", () => {
  it("has the indices of scipy's quantiles for flat, steep and skewed distributions", () => {
    for (const [size, steps, alpha, beta, indices] of SCIPY)
      assert.deepEqual(betaIndices(size, steps, alpha, beta), indices, `${size}, ${steps}, ${alpha}, ${beta}`);
  });

  it("rounds the exact middle to even", () => {
    assert.deepEqual(betaIndices(1000, 2, 0.6, 0.6), [999, 500]);
    assert.deepEqual(betaIndices(1000, 2, 1, 1), [999, 500]);
    assert.deepEqual(betaIndices(4, 2, 50, 50), [3, 2]);
  });

  it("falls, within the table, for parameters from a millionth to 50", () => {
    for (const alpha of [1e-6, 0.01, 1, 50])
      for (const beta of [1e-6, 0.01, 1, 50]) {
        const indices = betaIndices(1000, 300, alpha, beta);
        assert.equal(indices[0], 999);
        assert.ok(
          indices.every((index, i) => index >= 0 && (i === 0 || index < indices[i - 1]!)),
          `${alpha}, ${beta}`,
        );
      }
  });
});
