import type { LATENT_FORMATS } from "../../../tensor/sampling/latent-format.js";
import { FLUX_PLACES, FLUX2_PLACES, type TokenPlaces } from "./patches.js";

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
  /** Chroma's network that makes all changes of tokens. */
  readonly approximator?: ApproximatorSizes;
}

/** Sizes of a network that makes changes of tokens of a time and their numbers. */
export interface ApproximatorSizes {
  /** Numbers of an embedded time, guidance and number of a change. */
  readonly inputs: number;
  readonly width: number;
  readonly layers: number;
}

/** Changes [width] of all blocks: shift, scale and gate of each branch, then shift and scale before the last layer. */
export const changesIn = ({ doubleBlocks, singleBlocks }: Pick<FluxConfig, "doubleBlocks" | "singleBlocks">): number =>
  3 * singleBlocks + 12 * doubleBlocks + 2;

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
  /** The maker of changes of tokens: each block's own layers, three for all blocks, or a network. */
  readonly modulations: "own" | "shared" | "approximator";
  readonly places: TokenPlaces;
}

export type FluxKindName = "flux" | "flux2" | "chroma";

const FLUX: FluxKind = { latentFormat: "Flux", bias: true, mlp: "gelu", modulations: "own", places: FLUX_PLACES };

export const FLUX_KINDS: Readonly<Record<FluxKindName, FluxKind>> = {
  flux: FLUX,
  chroma: { ...FLUX, modulations: "approximator" },
  flux2: { latentFormat: "Flux2", bias: false, mlp: "gated", modulations: "shared", places: FLUX2_PLACES },
};
