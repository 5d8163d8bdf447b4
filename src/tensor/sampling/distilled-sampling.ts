import { exp, log } from "../../native/elementary.js";
import type { ModelSampling } from "./model-sampling.js";

/** Number of timesteps that latent consistency models are distilled to. */
const TIMESTEPS = 50;

/**
 * The sampling of a latent consistency model: every n-th level of a discrete table, so that 50 are left. Luo et al. 2023,
 * "Latent Consistency Models". timestep() gives those of the whole table.
 */
export function distilledSampling(whole: ModelSampling): ModelSampling {
  const skip = Math.floor(whole.sigmas.length / TIMESTEPS);
  const last = whole.sigmas.length - 1;
  const sigmas = Float32Array.from({ length: TIMESTEPS }, (_, i) => whole.sigmas[last - (TIMESTEPS - 1 - i) * skip]!);
  const logs = sigmas.map(log);
  const { name, prediction, latentFormat } = whole;
  return Object.freeze({
    name,
    prediction,
    sigmas,
    sigmaMin: sigmas[0]!,
    sigmaMax: sigmas[TIMESTEPS - 1]!,
    timestep: (sigma: number) => nearest(logs, log(sigma)) * skip + skip - 1,
    sigma: (timestep: number) => {
      const at = Math.min(Math.max((timestep - (skip - 1)) / skip, 0), TIMESTEPS - 1);
      const [low, high] = [Math.floor(at), Math.ceil(at)];
      return Math.fround(exp(logs[low]! + (logs[high]! - logs[low]!) * (at - low)));
    },
    latentFormat,
  });
}

/** Index of the first value of the smallest distance. */
function nearest(values: Float32Array, value: number): number {
  let best = 0;
  for (const [i, candidate] of values.entries()) {
    if (Math.abs(candidate - value) < Math.abs(values[best]! - value)) best = i;
  }
  return best;
}
