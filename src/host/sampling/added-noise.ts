import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import type { Latent } from "../types.js";
import { intoModel, noised, outOfModel } from "./latent-space.js";
import { type InitialNoise, initialNoise } from "./noise.js";

/**
 * A latent with noise of the level |first - last| of these sigmas, or of the only one; without sigmas the latent itself.
 * Values that are not finite become 0.
 */
export function addedNoise(sampling: ModelSampling, noise: InitialNoise, sigmas: Float32Array, latent: Latent): Latent {
  const [first] = sigmas;
  if (first === undefined) return latent;
  const sigma = sigmas.length === 1 ? first : Math.abs(first - sigmas.at(-1)!);
  const { samples } = latent;
  const batchIndex = latent.batch_index ?? undefined;
  const initial = initialNoise(noise, { shape: samples.shape, batchIndex });
  const noisy = outOfModel(noised(sampling, sigma, initial, intoModel(samples, sampling)), sampling);
  const { data } = noisy;
  for (let i = 0; i < data.length; i++) if (!Number.isFinite(data[i])) data[i] = 0;
  return { ...latent, samples: noisy };
}
