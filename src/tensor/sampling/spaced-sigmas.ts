import { exp, expm1, log, log1p, pow } from "../../native/elementary.js";
import { loadNative } from "../../native/load.js";
import { roundHalfEven } from "../rounding.js";

/** Ends of a schedule. */
interface Ends {
  readonly max: number;
  readonly min: number;
}

/** Values of a schedule, and the 0 at its end. */
const ended = (sigmas: readonly number[]): Float32Array => Float32Array.of(...sigmas, 0);

/** Shares of the way at n steps, from 0 to 1; 0 for a single one. */
const ramp = (n: number): number[] => Array.from({ length: n }, (_, i) => (n === 1 ? 0 : i / (n - 1)));

/** Evenly spaced in the rho-th root of sigma (Karras et al. 2022, equation 5), rho not 0. */
export function karrasSigmas(n: number, { max, min }: Ends, rho: number): Float32Array {
  const f = Math.fround;
  const [from, way] = [f(pow(max, 1 / rho)), f(pow(min, 1 / rho) - pow(max, 1 / rho))];
  // in float32, as the reference: the power multiplies the rounding of the sum
  return ended(linspace(0, 1, n).map((share) => pow(f(from + f(share * way)), rho)));
}

/** Log sigma falls with the rho-th power of what is left of the way; rho 1 is evenly spaced. Ends above 0. */
export function polyexponentialSigmas(n: number, { max, min }: Ends, rho: number): Float32Array {
  const [from, to] = [log(max), log(min)];
  return ended(ramp(n).map((share) => exp(pow(1 - share, rho) * (from - to) + to)));
}

/** Quantiles of a Laplace distribution of log sigma around mu, within the ends; no 0 at its end (Hang et al. 2024). */
export function laplaceSigmas(n: number, { max, min }: Ends, { mu, beta }: { mu: number; beta: number }): Float32Array {
  const f = Math.fround;
  // in float32: near the ends of the way the logarithm multiplies its rounding
  return Float32Array.from(linspace(0, 1, n), (share) => {
    const aside = f(0.5 - share);
    const logarithm = f(log(f(f(1 - f(2 * Math.abs(aside))) + f(1e-5))));
    const sigma = f(exp(f(f(mu) - f(f(f(beta) * Math.sign(aside)) * logarithm))));
    return Math.min(Math.max(sigma, f(min)), f(max));
  });
}

/** Continuous variance-preserving schedule (Song et al. 2021) from time 1 to `end`. */
export function vpSigmas(n: number, betaD: number, betaMin: number, end: number): Float32Array {
  const f = Math.fround;
  return ended(
    linspace(1, f(end), n).map((t) => {
      const exponent = f(f(f(f(betaD) * f(t * t)) / 2) + f(f(betaMin) * t));
      return Math.sqrt(f(expm1(exponent)));
    }),
  );
}

/**
 * Sigmas of Flux.2 for a picture of so many tokens: an even fall from 1 to 0, raised by a shift that fits measurements at 10
 * and 200 steps (Black Forest Labs 2025, `compute_empirical_mu`). n steps are n + 1 sigmas.
 */
export function flux2Sigmas(n: number, tokens: number): Float32Array {
  const f = Math.fround;
  const many = 0.00016927 * tokens + 0.45666666;
  const few = 8.73809524e-5 * tokens + 1.89833333;
  const slope = (many - few) / 190;
  // beyond 2^127 its reciprocal is not exact, and far beyond it e is infinite
  const e = Math.min(f(exp(tokens > 4300 ? many : slope * n + (many - 200 * slope))), 2 ** 127);
  // in float32, by reciprocals, as PyTorch divides a number by a tensor
  return Float32Array.from(linspace(1, 0, n + 1), (t) => e * f(1 / f(e + f(f(1 / t) - 1))));
}

/** PyTorch's linspace in float32: the first half counts from the start, the second from the end. */
export const linspace = (start: number, end: number, count: number): number[] =>
  Array.from(loadNative().linspace(start, end, count));

/** Terms that settle the fraction for parameters up to 50. */
const MAX_TERMS = 500;

/**
 * Indices of a table of `size` entries at the quantiles 1 - i / steps, i = 0 … steps - 1, of the beta distribution, each
 * rounded to the nearest, ties to even; repeats are dropped. alpha and beta are above 0.
 */
export function betaIndices(size: number, steps: number, alpha: number, beta: number): number[] {
  const last = size - 1;
  // the quantile of p rounds up to an index if the distribution half an index before it is below p
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

/** The quantile of p if it needs no distribution: at 1, of a flat one, in the middle of a symmetric one. */
function exactQuantile(p: number, alpha: number, beta: number): number | undefined {
  const isExact = p === 1 || (alpha === beta && (alpha === 1 || p === 0.5));
  return isExact ? p : undefined;
}

/** Index of a quantile, by its value if that is exact. */
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
 * I_x(a, b), 0 < x < 1, by the continued fraction (DLMF 8.17.22) on the side on which it converges. `logScale`: -ln B(a, b).
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
