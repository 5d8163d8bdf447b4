import { exp, log, log1p } from "../../native/elementary.js";
import { roundHalfEven } from "../rounding.js";

/** Half a table's index is decided by the distribution at it; this many terms settle parameters to 50. */
const MAX_TERMS = 500;

/**
 * Indices of a table of `size` entries at the quantiles 1 - i / steps, i = 0 … steps - 1, of the beta distribution, each
 * rounded to the nearest, ties to even; repeats are dropped. alpha and beta are above 0.
 */
export function betaIndices(size: number, steps: number, alpha: number, beta: number): number[] {
  const last = size - 1;
  // the quantile of p rounds up to an index where the distribution half an index before it is below p
  const logScale = logGamma(alpha + beta) - logGamma(alpha) - logGamma(beta);
  const bounds = Float64Array.from({ length: last }, (_, i) =>
    regularizedBeta((i + 0.5) / last, alpha, beta, logScale),
  );
  const indices: number[] = [];
  for (let i = 0; i < steps; i++) {
    const p = 1 - i / steps;
    const index = quantileIndex(bounds, p, exactQuantile(p, alpha, beta));
    if (index !== indices[indices.length - 1]) indices.push(index);
  }
  return indices;
}

/** The quantile of p where it needs no distribution: at 1, of a flat one, in the middle of one that is its own mirror. */
function exactQuantile(p: number, alpha: number, beta: number): number | undefined {
  const isExact = p === 1 || (alpha === beta && (alpha === 1 || p === 0.5));
  return isExact ? p : undefined;
}

/** Index of a quantile, by its value where that is exact. */
function quantileIndex(bounds: Float64Array, p: number, exact: number | undefined): number {
  if (exact !== undefined) return roundHalfEven(exact * bounds.length);
  let [low, high] = [0, bounds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bounds[middle]! < p) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * I_x(a, b), 0 < x < 1, by the continued fraction (DLMF 8.17.22) on the side where it converges. `logScale`: -ln B(a, b).
 */
function regularizedBeta(x: number, a: number, b: number, logScale: number): number {
  const front = exp(a * log(x) + b * log1p(-x) + logScale);
  return x < (a + 1) / (a + b + 2) ? (front * betaFraction(x, a, b)) / a : 1 - (front * betaFraction(1 - x, b, a)) / b;
}

/** The fraction by Lentz's method. */
function betaFraction(x: number, a: number, b: number): number {
  const tiny = 1e-300;
  const nonZero = (value: number): number => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / nonZero(1 - ((a + b) * x) / (a + 1));
  let value = d;
  for (let m = 1; m < MAX_TERMS; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    let step = 1;
    for (const term of [even, odd]) {
      d = 1 / nonZero(1 + term * d);
      c = nonZero(1 + term / c);
      step = c * d;
      value *= step;
    }
    if (Math.abs(step - 1) < 1e-16) break;
  }
  return value;
}

/** Coefficients of Lanczos' approximation, g = 7. */
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** ln gamma(z), z > 0. */
function logGamma(z: number): number {
  // gamma(z + 1) = z gamma(z), also for the smallest z
  if (z < 0.5) return logGamma(z + 1) - log(z);
  const [first, ...rest] = LANCZOS as [number, ...number[]];
  const sum = rest.reduce((total, coefficient, i) => total + coefficient / (z + i), first);
  const t = z + 6.5;
  return 0.5 * log(2 * Math.PI) + (z - 0.5) * log(t) - t + log(sum);
}
