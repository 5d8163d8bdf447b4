import { exp, expm1 } from "../../../../native/elementary.js";
import { momentWeights } from "./moment-weights.js";

/** Way of a stochastic Adams step in lambda, half the logarithm of the signal-to-noise ratio. */
export interface AdamsStep {
  readonly from: number;
  readonly to: number;
  /** Share of the noise that the step renews. */
  readonly tau: number;
}

/**
 * Weights of the estimates at `lambdas`, in units of the signal at the step's end: integrals of Lagrange polynomials
 * times (1 + tau^2) * exp((1 + tau^2) * (lambda - to)), as in SA-Solver (arXiv 2309.05019).
 */
export function stochasticWeights({ from, to, tau }: AdamsStep, lambdas: readonly number[]): number[] {
  const h = to - from;
  const nodes = lambdas.map((lambda) => (lambda - to) / h);
  return momentWeights(nodes, exponentialMoments((1 + tau * tau) * h, nodes.length));
}

/** The published simplification of the predictor of order 2: weights of the estimates at lambdas[0], the newest, and [1]. */
export function simplePredictor({ from, to, tau }: AdamsStep, [, before]: readonly number[]): number[] {
  const h = to - from;
  const rate = 1 + tau * tau;
  const older = (0.5 * rate * h * h) / (before! - from);
  return [-expm1(-h * rate) - older, older];
}

/** The published simplification of the corrector of order 2, from the estimates at the step's end and start. */
export function simpleCorrector({ from, to, tau }: AdamsStep): number[] {
  const h = to - from;
  const rate = 1 + tau * tau;
  const newest = 0.5 * rate * h;
  return [newest, -expm1(-h * rate) - newest];
}

/** Integrals of c * exp(c * v) * v^p from -1 to 0, for p from 0. */
function exponentialMoments(c: number, count: number): number[] {
  // by parts each moment follows from the one before, which cancels where c is small against p
  const rest = exp(-c);
  const moments = [-expm1(-c)];
  for (let p = 1; p < count; p++) {
    moments.push(Math.abs(c) < p ? momentSeries(c, p) : (p % 2 === 0 ? -rest : rest) - (p / c) * moments[p - 1]!);
  }
  return moments;
}

/** The same integral as a series of exp, which converges fast for c up to a few. */
function momentSeries(c: number, p: number): number {
  let power = c;
  let sum = 0;
  for (let k = 0; k < 40; k++) {
    sum += power / (p + k + 1);
    power *= -c / (k + 1);
  }
  return p % 2 === 0 ? sum : -sum;
}
