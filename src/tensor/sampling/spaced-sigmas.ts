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
