import type { Prediction } from "../../../tensor/sampling/model-sampling.js";
import type { Qwen3Config } from "../networks/qwen3.js";
import type { TextEncoderConfig } from "../networks/text-encoder.js";
import type { UnetConfig } from "../networks/unet.js";
import type { VaeConfig } from "../networks/vae.js";
import type { ZImageConfig } from "../networks/z-image.js";
import type { Part } from "./part.js";

export type StableDiffusionFamily = "sd1" | "sd2" | "sdxl" | "sdxl-refiner";
export type Family = StableDiffusionFamily | "z-image";

/** Noise levels and latents of a checkpoint. */
export interface CheckpointSampling {
  /** A table of 1,000 noise levels, continuous ones (EDM), or the flow of Z-Image. */
  readonly schedule: "discrete" | "edm" | "z-image";
  readonly prediction: Prediction;
  /** Whether the highest noise level of the table has no signal at all. */
  readonly zeroTerminalSnr: boolean;
  /** Bounds of continuous noise levels. */
  readonly sigmaMin?: number;
  readonly sigmaMax?: number;
  readonly latentFormat: "SD15" | "SDXL" | "SDXL_Playground_2_5" | "Flux";
}

/** The network that predicts. */
export type DiffusionPart =
  | { readonly kind: "unet"; readonly part: Part<UnetConfig> }
  | { readonly kind: "z-image"; readonly part: Part<ZImageConfig> };

/** A text encoder: one of CLIP's, or a language model. */
export type TextPart =
  | { readonly kind: "clip"; readonly part: Part<TextEncoderConfig> }
  | { readonly kind: "qwen3"; readonly part: Part<Qwen3Config> };

/** The networks of a checkpoint. A part that the file lacks is undefined, or missing in the list. */
export interface RecognisedCheckpoint {
  readonly family: Family;
  readonly sampling: CheckpointSampling;
  readonly network: DiffusionPart;
  /** In the order of their share in the context: SD "l" or "h", SDXL "l" and "g", its refiner "g". */
  readonly textEncoders: readonly TextPart[];
  readonly vae?: Part<VaeConfig>;
  /** Whether the network takes a mask and a masked picture beside the latent. */
  readonly inpaint: boolean;
  /** Number of tensors in the file that no part uses, such as averages of training. */
  readonly ignored: number;
}
