import { LatentkitError } from "../../../../base/errors.js";
import { exp, log, square } from "../../../../native/elementary.js";
import type { Solver } from "../../solver.js";
import { adams, lagrangeWeights } from "./adams.js";
import { requireOneOf, requireWhole } from "./checks.js";
import { momentWeights } from "./moment-weights.js";

interface DeisOptions {
  max_order: number;
  /** tab: polynomials in variance-preserving time; rhoab: in sigma. */
  deis_mode: "tab" | "rhoab";
}

/** Diffusion exponential integrator sampler (arXiv 2204.13902), in tab and rhoab form. */
export const deis: Solver<DeisOptions> = {
  noise: "none",
  options: { max_order: 3, deis_mode: "tab" },
  async sample(x, context, { max_order, deis_mode }) {
    const { sigmas } = context;
    requireWhole("deis, max_order", max_order, 2, 4);
    requireOneOf("deis, deis_mode", deis_mode, ["tab", "rhoab"]);
    if (deis_mode === "rhoab" && max_order < 4 && sigmas.length > max_order + 1 && sigmas[max_order + 1]! > 0) {
      const message = `deis, max_order: expected 4 with deis_mode rhoab, received ${max_order}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    return adams(x, context, {
      order: max_order,
      weights: (index, order) => {
        if (order === 1) return [sigmas[index + 1]! - sigmas[index]!];
        if (deis_mode === "tab") return tabWeights(sigmas, index, order);
        // the published code has no rhoab weights of a fifth step: it repeats those of the fourth, and so does the reference
        return lagrangeWeights(sigmas, Math.min(index, 3), order);
      },
    });
  },
};

/** Variance-preserving time of the noise schedule that spans sigma 0.002 at time 0.001 to sigma 80 at time 1. */
// ln(sigma^2 + 1), written out: an import loads no native core
const [LOW, HIGH] = [3.999991999914312e-6, 8.764209507142004];
const BETA_SLOPE = (2 * (LOW / 0.001 - HIGH)) / (0.001 - 1);
const BETA_START = HIGH - BETA_SLOPE / 2;

/** Rate of the schedule, beta, at the time whose noise level is sigma. */
const betaOf = (sigma: number): number => Math.sqrt(square(BETA_START) + 2 * BETA_SLOPE * log(square(sigma) + 1));
const timeOf = (sigma: number): number => (betaOf(sigma) - BETA_START) / BETA_SLOPE;
/** Derivative of sigma by time. */
const sigmaRate = (sigma: number): number => ((square(sigma) + 1) * betaOf(sigma)) / (2 * sigma);

/** Points at which the published code samples the way of a step, both ends included. */
const POINTS = 10_000;
const PANELS = 16;
/** Gauss-Legendre points and weights of a panel from 0 to 1. */
const GAUSS = [
  [0.5 - Math.sqrt(0.15), 5 / 18],
  [0.5, 8 / 18],
  [0.5 + Math.sqrt(0.15), 5 / 18],
] as const;

/**
 * Weights of the derivatives at sigmas[index], sigmas[index - 1] …: Lagrange polynomials in variance-preserving time,
 * integrated over sigma. The published code adds the values at 10,000 points and multiplies by a 10,000th of the way:
 * the trapezoid rule and half the values at the ends. The integral stands for that rule, whose own error is below 3e-7 of
 * a weight from sigma 0.002 on.
 */
function tabWeights(sigmas: Float32Array, index: number, order: number): number[] {
  const [sigma, next] = [sigmas[index]!, sigmas[index + 1]!];
  const start = timeOf(sigma);
  const span = timeOf(next) - start;
  const share = (level: number) => (timeOf(level) - start) / span;
  const moments = new Array<number>(order).fill(0);
  const add = (value: number, at: number) => {
    for (let power = 0, term = value; power < order; power++, term *= at) moments[power]! += term;
  };
  // in log(sigma), where the integrand is smooth down to the smallest noise levels
  const width = log(next / sigma) / PANELS;
  for (let panel = 0; panel < PANELS; panel++) {
    for (const [offset, weight] of GAUSS) {
      const level = sigma * exp(width * (panel + offset));
      add((weight * width * level * (POINTS - 1)) / POINTS, share(level));
    }
  }
  add((sigmaRate(sigma) * span) / POINTS / 2, 0);
  add((sigmaRate(next) * span) / POINTS / 2, 1);
  const nodes = moments.map((_, back) => share(sigmas[index - back]!));
  return momentWeights(nodes, moments);
}
