import type { ModelSampling } from "./model-sampling.js";
import { isFlow } from "./noise-level.js";

/** Noise level above every schedule: what begins at 0 % is never too early. */
const ABOVE_ALL = 999_999_999.9;

/** Noise level at a fraction 0 … 1 of all sampling steps; up to 0 it is above every schedule, from 1 on it is 0. */
export function percentToSigma(sampling: ModelSampling, percent: number): number {
  if (percent <= 0) return isFlow(sampling) ? 1 : ABOVE_ALL;
  if (percent >= 1) return 0;
  const left = 1 - percent;
  if (isFlow(sampling)) return sampling.sigma(left * sampling.timestep(1));
  if (sampling.prediction === "edm" || sampling.prediction === "edm-v") {
    const low = Math.log(sampling.sigmaMin);
    return Math.exp((Math.log(sampling.sigmaMax) - low) * left + low);
  }
  return sampling.sigma(sampling.sigmas.length > 1000 ? left : left * 999);
}
