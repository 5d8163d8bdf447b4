import type { ModelSampling } from "./model-sampling.js";
import { isFlow } from "./noise-level.js";

/** Noise level at a share of the way from noise (0) to image (1), as ranges of conditioning and samplers state it. */
export function percentToSigma(sampling: ModelSampling, percent: number): number {
  if (percent <= 0) return isFlow(sampling) ? 1 : 999999999.9;
  if (percent >= 1) return 0;
  const last = isFlow(sampling) ? sampling.timestep(1) : 999;
  return sampling.sigma((1 - percent) * last);
}
