import assert from "node:assert/strict";
import { wavesOf } from "#src/host/preview/cosines.js";
import { type Prior, posterior, priorOf } from "#src/host/preview/mixture.js";

const [down, across] = [wavesOf(6), wavesOf(8)];
const CENTRE = Float64Array.from({ length: 48 }, (_, i) => ((i * 7) % 5) - 2);
const OTHER = CENTRE.map((value) => -value);

const estimate = (x: Float64Array, prior: Prior, sigma: number): Float64Array =>
  posterior([x], prior, 1, sigma).means[0]!;

describe("the preview model's mixture", () => {
  it("of one Gaussian lets Heun's method converge to the exact path at second order", () => {
    const prior = priorOf([[CENTRE]], 1, down, across);
    const [first, last] = [8, 0.05];
    const start = CENTRE.map((value, i) => value + first * Math.cos(i));
    const exact = CENTRE.map((value, i) => {
      const ratio = (prior.variance[i]! + last ** 2) / (prior.variance[i]! + first ** 2);
      return value + (start[i]! - value) * Math.sqrt(ratio);
    });
    const errorOf = (steps: number): number => {
      const path = heun(start, prior, first, last, steps);
      return Math.max(...path.map((value, i) => Math.abs(value - exact[i]!)));
    };
    const [coarse, fine] = [errorOf(40), errorOf(80)];
    assert.ok(fine < 1e-2, String(fine));
    assert.ok(coarse / fine > 3.5 && coarse / fine < 4.6, String(coarse / fine));
  });

  it("returns x plus sigma squared times the slope of the logarithm of its density", () => {
    const prior = priorOf([[CENTRE], [OTHER]], 1, down, across);
    const [sigma, step] = [2, 1e-5];
    const x = Float64Array.from({ length: 48 }, (_, i) => Math.sin(i) / 2);
    const means = estimate(x, prior, sigma);
    for (const at of [0, 1, 13, 47]) {
      const [up, below] = [x.slice(), x.slice()];
      up[at]! += step;
      below[at]! -= step;
      const slope = (logDensity(up, prior, sigma) - logDensity(below, prior, sigma)) / (2 * step);
      assert.ok(Math.abs(means[at]! - (x[at]! + sigma * sigma * slope)) < 1e-5, `wave ${at}`);
    }
  });

  it("is the nearer centre's Gaussian where the other one is far", () => {
    const both = priorOf([[CENTRE], [OTHER.map((value) => 30 * value)]], 1, down, across);
    const alone = priorOf([[CENTRE]], 1, down, across);
    assert.deepEqual(estimate(CENTRE, both, 1), estimate(CENTRE, alone, 1));
  });
});

function heun(start: Float64Array, prior: Prior, first: number, last: number, steps: number): Float64Array {
  const sigmas = Array.from({ length: steps + 1 }, (_, i) => first * (last / first) ** (i / steps));
  const slope = (x: Float64Array, sigma: number) => {
    const means = estimate(x, prior, sigma);
    return x.map((value, i) => (value - means[i]!) / sigma);
  };
  let x = start;
  for (let i = 0; i < steps; i++) {
    const [sigma, next] = [sigmas[i]!, sigmas[i + 1]!];
    const here = slope(x, sigma);
    const ahead = x.map((value, k) => value + here[k]! * (next - sigma));
    const there = slope(ahead, next);
    x = x.map((value, k) => value + (0.5 * here[k]! + 0.5 * there[k]!) * (next - sigma));
  }
  return x;
}

/** Logarithm of the density of x = clean + sigma * noise, but for a constant. */
function logDensity(x: Float64Array, { centres, variance }: Prior, sigma: number): number {
  const parts = centres.map(([centre]) =>
    x.reduce((sum, value, i) => sum - (0.5 * (value - centre![i]!) ** 2) / (variance[i]! + sigma * sigma), 0),
  );
  const most = Math.max(...parts);
  return most + Math.log(parts.reduce((sum, part) => sum + Math.exp(part - most), 0));
}
