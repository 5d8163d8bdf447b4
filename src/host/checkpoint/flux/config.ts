import type { LATENT_FORMATS } from "../../../tensor/sampling/latent-format.js";
import { FLUX_PLACES, FLUX2_PLACES, type TokenPlaces } from "./positions.js";

/** Sizes of a transformer of Flux's blocks. */
export interface FluxConfig extends StreamSizes {
  /** Numbers of a patch that it takes: as many as it makes, more in Fill and Control. */
  readonly inputs: number;
  /** Numbers of a patch that it makes. */
  readonly outputs: number;
  /** Numbers of a text's token. */
  readonly contextWidth: number;
  /** Numbers of the pooled text; 0 if it does not take one. */
  readonly pooledWidth: number;
  readonly doubleBlocks: number;
  readonly singleBlocks: number;
  /** Whether it takes a guidance, as distilled models do not. */
  readonly hasGuidance: boolean;
}

/** Sizes of the blocks. */
export interface StreamSizes {
  readonly kind: FluxKindName;
  readonly width: number;
  readonly heads: number;
  readonly headSize: number;
  /** Numbers between the two layers of an MLP. */
  readonly mlp: number;
  /** Endings of the norms of heads. */
  readonly norms: "scale" | "weight";
}

/** Facts in which models with such blocks differ, beside their sizes. */
interface FluxKind {
  readonly latentFormat: keyof typeof LATENT_FORMATS;
  /** Whether layers have biases. */
  readonly bias: boolean;
  /** An MLP between its layers: gelu of all numbers, or silu of the first half times the second. */
  readonly mlp: "gelu" | "gated";
  /** Layers that make the changes of tokens: each block's own, or three for all blocks. */
  readonly modulations: "own" | "shared";
  readonly places: TokenPlaces;
}

export type FluxKindName = "flux" | "flux2";

export const FLUX_KINDS: Readonly<Record<FluxKindName, FluxKind>> = {
  flux: { latentFormat: "Flux", bias: true, mlp: "gelu", modulations: "own", places: FLUX_PLACES },
  flux2: { latentFormat: "Flux2", bias: false, mlp: "gated", modulations: "shared", places: FLUX2_PLACES },
};
