import { square } from "../../../native/elementary.js";
import { weightedSum } from "../../../tensor/ops.js";
import { LATENT_FORMATS, type LatentFormat } from "../../../tensor/sampling/latent-format.js";
import { type ModelSampling, modelSampling } from "../../../tensor/sampling/model-sampling.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { CheckpointSampling, Family } from "../recognition/family.js";

/** Names of the families as in `modelSampling`. */
const NAMES = {
  sd1: "sd15",
  sd2: "sd21",
  sdxl: "sdxl",
  "sdxl-refiner": "sdxl-refiner",
  "z-image": "z-image",
  flux: "flux",
  "flux-schnell": "flux-schnell",
} as const;

/** Noise levels of a checkpoint, under its family's name and with its latents. */
export function samplingOf(family: Family, facts: CheckpointSampling): ModelSampling {
  const { schedule, prediction, zeroTerminalSnr: zsnr, sigmaMin, sigmaMax, latentFormat } = facts;
  if (schedule === "z-image" || schedule === "flux" || schedule === "flux-schnell") return modelSampling(schedule);
  const table =
    schedule === "edm"
      ? modelSampling(prediction === "edm" ? "playground25" : "svd", { sigmaMin, sigmaMax })
      : modelSampling(prediction === "v" ? "sd21-v" : "sd15", { zsnr });
  return ofFamily(table, family, LATENT_FORMATS[latentFormat]);
}

/** Noise levels under a family's name, with its latents. */
export const ofFamily = (table: ModelSampling, family: Family, latentFormat: LatentFormat): ModelSampling =>
  Object.freeze({ ...table, name: NAMES[family], latentFormat });

/** The quantity that the network of a checkpoint predicts. */
export const readingOf = ({ prediction }: CheckpointSampling): Reading => prediction as Reading;

/** The quantity that a network predicts. */
export type Reading = "eps" | "v" | "lcm" | "x0" | "edm" | "edm-v" | "flow";

/** One prediction: the noisy latent, the network's output and the noise level. */
export interface Predicted {
  readonly x: Tensor;
  readonly out: Tensor;
  readonly sigma: number;
  readonly timestep: number;
}

/** Standard deviation of clean latents that a reading assumes: 0.5 in Karras et al. 2022, else 1. */
const dataDeviation = (reading: Reading): number => (reading === "edm" ? 0.5 : 1);

/** Factor of the noisy latent on its way into the network: 1 / sqrt(sigma² + data²), 1 in a flow. */
export const inputScale = (reading: Reading, sigma: number): number =>
  reading === "flow" ? 1 : 1 / Math.sqrt(sigma * sigma + square(dataDeviation(reading)));

/**
 * The estimate of the clean latent. v: Salimans and Ho 2022, "Progressive Distillation"; edm: Karras et al. 2022; lcm: the
 * boundary condition of Luo et al. 2023, "Latent Consistency Models", with timesteps scaled by 10 and data deviation 0.5; flow:
 * Lipman et al. 2023, "Flow Matching", whose velocity is noise - data.
 */
export function cleanOf(reading: Reading, { x, out, sigma, timestep }: Predicted): Tensor {
  const data = dataDeviation(reading);
  const variance = sigma * sigma + data * data;
  switch (reading) {
    case "x0":
      return out;
    case "flow":
    case "eps":
      return weightedSum([
        [1, x],
        [-sigma, out],
      ]);
    case "lcm": {
      const scaled = square(timestep * 10);
      const toClean = Math.sqrt(scaled / (scaled + 0.25));
      return weightedSum([
        [toClean + 0.25 / (scaled + 0.25), x],
        [-sigma * toClean, out],
      ]);
    }
    case "v":
    case "edm-v":
    case "edm": {
      const sign = reading === "edm" ? 1 : -1;
      return weightedSum([
        [(data * data) / variance, x],
        [(sign * sigma * data) / Math.sqrt(variance), out],
      ]);
    }
  }
}
