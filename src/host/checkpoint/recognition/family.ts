import type { Prediction } from "../../../tensor/sampling/model-sampling.js";

export type StableDiffusionFamily = "sd1" | "sd2" | "sdxl" | "sdxl-refiner";

export type Family = StableDiffusionFamily | "z-image" | "flux" | "flux-schnell";

/** Noise levels and latents of a checkpoint. */
export interface CheckpointSampling {
  /** A table of 1,000 noise levels, continuous ones (EDM), or the flow of a family. */
  readonly schedule: "discrete" | "edm" | "z-image" | "flux" | "flux-schnell";
  readonly prediction: Prediction;
  /** Whether the highest noise level of the table has no signal at all. */
  readonly zeroTerminalSnr: boolean;
  /** Bounds of continuous noise levels. */
  readonly sigmaMin?: number;
  readonly sigmaMax?: number;
  readonly latentFormat: "SD15" | "SDXL" | "SDXL_Playground_2_5" | "Flux";
}
