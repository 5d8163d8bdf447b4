import { type ModelSampling, specOf } from "./model-sampling.js";
import { isFlow } from "./noise-level.js";

/** Above every noise level: the whole of sampling lies below it. */
const BEFORE_ALL = 999999999.9;

/**
 * Noise level that a share of sampling from 0 to 1 has reached, as ComfyUI counts it: in timesteps, of continuous EDM in
 * log sigma. 0 and less is above all levels (1 of a flow), 1 and more is 0.
 */
export function percentToSigma(sampling: ModelSampling, percent: number): number {
  if (percent <= 0) return isFlow(sampling) ? 1 : BEFORE_ALL;
  if (percent >= 1) return 0;
  const left = 1 - percent;
  const spec = specOf(sampling);
  // in double where the formula is given, as the reference
  if (spec?.kind === "flow") return (spec.shift * left) / (1 + (spec.shift - 1) * left);
  if (spec?.kind === "flux") return Math.exp(spec.shift) / (Math.exp(spec.shift) + (1 / left - 1));
  if (spec?.kind === "cascade") return sampling.sigma(left);
  const last = sampling.timestep(sampling.sigmaMax);
  if (isFlow(sampling)) return sampling.sigma(last * left);
  // 0 for discrete samplings, a quarter of the logarithm for EDM
  const first = sampling.timestep(sampling.sigmaMin);
  return sampling.sigma(first + (last - first) * left);
}
