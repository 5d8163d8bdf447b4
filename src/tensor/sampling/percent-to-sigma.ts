import { exp, log } from "../../native/elementary.js";
import { type ModelSampling, specOf } from "./model-sampling.js";
import { isFlow } from "./noise-level.js";

/** Sigma above that of every model, where sampling begins at any noise level. */
const ABOVE_ALL = 999_999_999.9;

/**
 * Noise level at a share of the way from noise to image: above all levels up to 0 (1 for a flow), 0 from 1 on, else the
 * level of the timestep at that share, by the formula of the model's family.
 */
export function percentToSigma(sampling: ModelSampling, percent: number): number {
  if (percent <= 0) return isFlow(sampling) ? 1 : ABOVE_ALL;
  if (percent >= 1) return 0;
  const rest = 1 - percent;
  const spec = specOf(sampling);
  switch (spec?.kind) {
    case "flow":
      return (spec.shift * rest) / (1 + (spec.shift - 1) * rest);
    case "flux":
      return 1 / (1 + (1 / rest - 1) * exp(-spec.shift));
    case "edm":
      return exp(log(spec.sigmaMax) * rest + log(spec.sigmaMin) * percent);
    case "cascade":
      return sampling.sigma(rest);
    case "discrete":
      return sampling.sigma(rest * (sampling.sigmas.length - 1));
    default:
      return ofForeign(sampling, rest);
  }
}

/** `percentToSigma` as a border of a range: a float32, as levels of a schedule are, so that ranges share a step on it. */
export const borderAt = (sampling: ModelSampling, percent: number): number =>
  Math.fround(percentToSigma(sampling, percent));

/** The level of a sampling that modelSampling() did not make, by its own maps: a flow's timesteps begin at 0. */
function ofForeign(sampling: ModelSampling, rest: number): number {
  const first = isFlow(sampling) ? 0 : sampling.timestep(sampling.sigmaMin);
  return sampling.sigma(first + (sampling.timestep(sampling.sigmaMax) - first) * rest);
}

/** Noise levels whose first has a signal, for solvers that divide by it: a flow's level of 1 becomes that of 0.01 %. */
export function withSignal(sampling: ModelSampling, sigmas: Float32Array): Float32Array {
  if (!isFlow(sampling) || !(sigmas[0]! >= 1)) return sigmas;
  const replaced = sigmas.slice();
  replaced[0] = percentToSigma(sampling, 1e-4);
  return replaced;
}
