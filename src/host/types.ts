import type { ModelSampling } from "../tensor/model-sampling.js";
import type { Tensor } from "../tensor/tensor.js";

/** `[cond [1, tokens, dim], options]` entries; options hold pooled_output, mask, start_percent and the like. */
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
  /** The denoised estimate of x [B, C, H, W] at noise level sigma. */
  predict?(x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor>;
}

/** The bridge between pictures and latents; both functions return new tensors. */
export interface Vae {
  /** image [B, H, W, 3] in 0…1 to latent [B, C, H/8, W/8]. */
  encode(image: Tensor): Promise<Tensor>;
  /** latent [B, C, h, w] to image [B, 8h, 8w, 3] in 0…1. */
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
  /** Plain text to ids, without weights, start or end. */
  tokenize(text: string): number[];
  /** Chunks of 77 ids to cond [chunks, 77, dim] and pooled [chunks, dim], new tensors that become a conditioning. */
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

/** The bundle that `ext` nodes hand on; a node that changes it returns a copy. */
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

/** What nodes need from outside: where models come from. */
export interface Host {
  readonly name: string;
  /** True where the pictures stand in for a real model's. */
  readonly preview: boolean;
  /** Hosts of one signature answer alike, so a cache serves runs that each make their own. Absent: only itself. */
  readonly signature?: string;
  /**
   * Its models keep no tensor they are given and hand none out twice: a run may use the memory again. Counts where it is
   * the host's own and not enumerable, so that a host made from another one's properties has to say it itself.
   */
  readonly keepsNothing?: boolean;
  checkpoints(): readonly string[];
  loadCheckpoint(name: string, signal?: AbortSignal): Promise<Checkpoint>;
}
