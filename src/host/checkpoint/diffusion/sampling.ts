import { square } from "../../../native/elementary.js";
import { weightedSum } from "../../../tensor/ops.js";
import { LATENT_FORMATS, type LatentFormat } from "../../../tensor/sampling/latent-format.js";
import {
  type ModelSampling,
  type ModelSamplingName,
  modelSampling,
  type Prediction,
} from "../../../tensor/sampling/model-sampling.js";
import type { Tensor } from "../../../tensor/tensor.js";

/** Noise levels and latents of a checkpoint. */
export interface CheckpointSampling {
  /** A table of 1,000 noise levels, continuous ones (EDM), or those of modelSampling() by name. */
  readonly schedule: "discrete" | "edm" | ModelSamplingName;
  readonly prediction: Prediction;
  /** Whether the highest noise level of the table has no signal at all. */
  readonly zeroTerminalSnr: boolean;
  /** Bounds of continuous noise levels. */
  readonly sigmaMin?: number;
  readonly sigmaMax?: number;
  readonly latentFormat: keyof typeof LATENT_FORMATS;
}

/** The flow of a family whose noise levels modelSampling() knows. */
export const flowOf = (
  schedule: ModelSamplingName,
  latentFormat: CheckpointSampling["latentFormat"],
): CheckpointSampling => ({ schedule, prediction: "flow", zeroTerminalSnr: false, latentFormat });

/** Families that have another name in `modelSampling`. */
const NAMES: Readonly<Record<string, string>> = { sd1: "sd15", sd2: "sd21" };

/** Noise levels of a checkpoint, under its family's name and with its latents. */
export function samplingOf(family: string, facts: CheckpointSampling): ModelSampling {
  const { schedule, prediction, zeroTerminalSnr: zsnr, sigmaMin, sigmaMax, latentFormat } = facts;
  const tables = {
    edm: () => modelSampling(prediction === "edm" ? "playground25" : "svd", { sigmaMin, sigmaMax }),
    discrete: () => modelSampling(prediction === "v" ? "sd21-v" : "sd15", { zsnr }),
  };
  const table = schedule === "edm" || schedule === "discrete" ? tables[schedule]() : modelSampling(schedule);
  return ofFamily(table, family, LATENT_FORMATS[latentFormat]);
}

/** Noise levels under a family's name, with its latents. */
export const ofFamily = (table: ModelSampling, family: string, latentFormat: LatentFormat): ModelSampling =>
  Object.freeze({ ...table, name: NAMES[family] ?? family, latentFormat });

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
