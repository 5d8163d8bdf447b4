import { LATENT_FORMATS, type LatentFormat } from "../../tensor/sampling/latent-format.js";
import { type ModelSampling, modelSampling } from "../../tensor/sampling/model-sampling.js";
import type { Reading } from "./reading.js";
import type { CheckpointSampling, Family } from "./recognition/recognised.js";

/** Names of the families as in `modelSampling`. */
const NAMES = { sd1: "sd15", sd2: "sd21", sdxl: "sdxl", "sdxl-refiner": "sdxl-refiner", "z-image": "z-image" } as const;

/** Noise levels of a checkpoint, under its family's name and with its latents. */
export function samplingOf(family: Family, facts: CheckpointSampling): ModelSampling {
  const { schedule, prediction, zeroTerminalSnr: zsnr, sigmaMin, sigmaMax, latentFormat } = facts;
  if (schedule === "z-image") return modelSampling("z-image");
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
