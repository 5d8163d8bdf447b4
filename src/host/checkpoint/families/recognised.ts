import type { FluxConfig } from "../flux/build.js";
import type { CheckpointSampling, Family } from "../recognition/family.js";
import type { Part } from "../recognition/part.js";
import type { TextPart } from "../text-encoder/recognise.js";
import type { UnetConfig } from "../unet/build.js";
import type { VaeConfig } from "../vae/build.js";
import type { ZImageConfig } from "../z-image/build.js";

/** The network that predicts. */
export type DiffusionPart =
  | { readonly kind: "unet"; readonly part: Part<UnetConfig> }
  | { readonly kind: "z-image"; readonly part: Part<ZImageConfig> }
  | { readonly kind: "flux"; readonly part: Part<FluxConfig> };

/** The networks of a checkpoint. A part that the file lacks is undefined, or missing in the list. */
export interface RecognisedCheckpoint {
  readonly family: Family;
  readonly sampling: CheckpointSampling;
  readonly network: DiffusionPart;
  /** In the order of their share in the context: SD "l" or "h", SDXL "l" and "g", its refiner "g"; Flux "l" and T5. */
  readonly textEncoders: readonly TextPart[];
  readonly vae?: Part<VaeConfig>;
  /** Whether the network takes a mask and a masked picture beside the latent. */
  readonly inpaint: boolean;
  /** Number of tensors in the file that no part uses, such as averages of training. */
  readonly ignored: number;
}
