import { exp, expm1, log, pow } from "../../native/elementary.js";
import { linspace } from "./linspace.js";

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
