import { LatentkitError } from "../../../../base/errors.js";
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

const POINTS = 10_000;

/** Variance-preserving time of the noise schedule that spans sigma 0.002 at time 0.001 to sigma 80 at time 1. */
const LOW = Math.log(0.002 ** 2 + 1);
const HIGH = Math.log(80 ** 2 + 1);
const BETA_SLOPE = (2 * (LOW / 0.001 - HIGH)) / (0.001 - 1);
const BETA_START = HIGH - BETA_SLOPE / 2;

/** Time at which the schedule's noise level is sigma. */
const timeOf = (sigma: number): number =>
  (Math.sqrt(BETA_START ** 2 + 2 * BETA_SLOPE * Math.log(sigma ** 2 + 1)) - BETA_START) / BETA_SLOPE;

/** Derivative of sigma by time: (beta / 2) / sqrt(alpha * (1 - alpha)). */
function noiseRate(time: number): number {
  const alpha = Math.exp(-time * (BETA_START + (BETA_SLOPE / 2) * time));
  return (BETA_START + BETA_SLOPE * time) / 2 / Math.sqrt(alpha - alpha * alpha);
}

/**
 * Weights of the derivatives at sigmas[index], sigmas[index - 1] …: Lagrange polynomials in variance-preserving time,
 * integrated over sigma as the published code does: the sum at 10,000 points with both ends, times a 10,000th of the way.
 */
function tabWeights(sigmas: Float32Array, index: number, order: number): number[] {
  const start = timeOf(sigmas[index]!);
  const span = timeOf(sigmas[index + 1]!) - start;
  const nodes = Array.from({ length: order }, (_, back) => (timeOf(sigmas[index - back]!) - start) / span);
  let [m0, m1, m2, m3] = [0, 0, 0, 0];
  for (let point = 0; point < POINTS; point++) {
    const t = point / (POINTS - 1);
    const rate = noiseRate(start + span * t);
    m0 += rate;
    m1 += rate * t;
    m2 += rate * t * t;
    m3 += rate * t * t * t;
  }
  const moments = [m0, m1, m2, m3].map((sum) => (sum * span) / POINTS);
  return momentWeights(nodes, moments);
}
