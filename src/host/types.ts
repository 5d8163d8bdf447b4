import type { ModelSampling } from "../tensor/sampling/model-sampling.js";
import type { Tensor } from "../tensor/tensor.js";

/** `[cond [1, tokens, dim], options]` entries; options are pooled_output, mask, start_percent and the like. */
export type Conditioning = [Tensor, Record<string, unknown>][];

/** `samples` is [B, C, H, W] in latent cells; unknown keys are carried along. */
export interface Latent {
  samples: Tensor;
  noise_mask?: Tensor;
  batch_index?: number[];
  [key: string]: unknown;
}

/** A diffusion model: its noise schedule and, where it can denoise, its prediction. */
export interface Model {
  readonly sampling: ModelSampling;
  /** Returns the denoised estimate of x [B, C, H, W] at noise level sigma. */
  predict?(x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor>;
}

/** The bridge between pictures and latents; both functions return new tensors. */
export interface Vae {
  /** Encodes an image [B, H, W, 3] in 0…1 to a latent [B, C, H/8, W/8]. */
  encode(image: Tensor): Promise<Tensor>;
  /** Decodes a latent [B, C, h, w] to an image [B, 8h, 8w, 3] in 0…1. */
  decode(latent: Tensor): Promise<Tensor>;
}

/** SD: one encoder ("l"); SDXL: two ("l", "g"). */
export interface Clip {
  readonly encoders: readonly ClipEncoder[];
}

/** One text encoder: `start`, `end` and `pad` are its special token ids, `length` is the size of a chunk. */
export interface ClipEncoder {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly pad: number;
  readonly length: 77;
  /** Splits plain text into ids, without weights, start or end. */
  tokenize(text: string): number[];
  /** Encodes chunks of 77 ids to cond [chunks, 77, dim] and pooled [chunks, dim]: new tensors, which a conditioning takes over. */
  encode(chunks: number[][]): Promise<{ cond: Tensor; pooled?: Tensor }>;
}

/** Settings of the loader that made a pipe, under the names of the `ext` nodes' inputs. */
export interface LoaderSettings {
  batch_size?: number;
  empty_latent_height?: number;
  empty_latent_width?: number;
  positive?: string;
  negative?: string;
  positive_token_normalization?: string;
  positive_weight_interpretation?: string;
  negative_token_normalization?: string;
  negative_weight_interpretation?: string;
  a1111_prompt_style?: boolean;
  steps?: number;
  spent_time?: string;
  [key: string]: unknown;
}

/** Bundle that `ext` nodes pass on; a node that changes it returns a copy. */
export interface Pipe {
  model?: Model | null;
  vae?: Vae | null;
  clip?: Clip | null;
  positive?: Conditioning | null;
  negative?: Conditioning | null;
  samples?: Latent | null;
  loader_settings?: LoaderSettings;
  [key: string]: unknown;
}

/** The parts of a checkpoint that a host has loaded. */
export interface Checkpoint {
  model: Model;
  clip: Clip;
  vae: Vae;
}

/** Source of models for nodes. */
export interface Host {
  readonly name: string;
  /** True for a host whose pictures are previews and not those of a real model. */
  readonly preview: boolean;
  /** Hosts with equal signatures load equal models, so that they share cached results. Absent: shares with itself only. */
  readonly signature?: string;
  /**
   * Declares that its models retain no tensor they receive and return no tensor twice, so that a run may reuse memory.
   * Counts only as the host's own, non-enumerable property: a host made from another one's has to declare it again.
   */
  readonly retainsNoTensors?: boolean;
  checkpoints(): readonly string[];
  loadCheckpoint(name: string, signal?: AbortSignal): Promise<Checkpoint>;
}
