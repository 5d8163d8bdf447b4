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

/** Estimates of the clean latent that guidance combines, at one noise level. */
export interface GuidanceStep {
  readonly x: Tensor;
  readonly sigma: number;
  /** Estimate of the positive side. */
  readonly cond: Tensor;
  /** Estimate of the negative side. */
  readonly uncond: Tensor;
  readonly cfg: number;
  /** Evaluates the model on another conditioning, or on another x. */
  predict(cond: Conditioning, x?: Tensor): Promise<Tensor>;
}

/** Changes of guidance that nodes have added to a model. */
export interface Guidance {
  /** Replaces uncond + (cond - uncond) * cfg. */
  combine?(step: GuidanceStep): Tensor | Promise<Tensor>;
  /** Change the guided estimate, in order. */
  readonly after?: readonly ((denoised: Tensor, step: GuidanceStep) => Tensor | Promise<Tensor>)[];
  /** Returns the denoise mask of one noise level in place of the run's own. */
  mask?(mask: Tensor, sigma: number, sigmas: Float32Array): Tensor;
}

/** A diffusion model: its noise schedule and, where it can denoise, its prediction. */
export interface Model {
  readonly sampling: ModelSampling;
  /**
   * Returns the estimate of the clean latent of x at noise level sigma. Of k entries of cond, entry i belongs to the i-th
   * of k equal parts of x [k * B, C, H, W], so that one call evaluates both sides of guidance.
   */
  predict?(x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor>;
  readonly guidance?: Guidance;
  /** Returns a model with a changed network. Absent: its network cannot be changed. */
  patch?(patch: ModelPatch): Model;
}

/** A change of a model's network, under the name of ComfyUI's node and with its inputs. */
export interface ModelPatch {
  readonly node: string;
  readonly inputs: Readonly<Record<string, unknown>>;
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
  /** Returns a clip that encodes with an earlier layer, -1 (the last) to -24. Absent: it has one layer. */
  atLayer?(layer: number): Clip;
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

/** A model that enlarges images by a whole factor. */
export interface UpscaleModel {
  readonly scale: number;
  /** Enlarges an image [B, H, W, 3] in 0…1. */
  upscale(image: Tensor, signal?: AbortSignal): Promise<Tensor>;
}

/** Kinds of model files beside checkpoints, by the names of ComfyUI's folders, and what each is loaded as. */
export interface HostFiles {
  loras: { apply(model: Model, clip: Clip | undefined, strengths: { model: number; clip: number }): [Model, Clip?] };
  vae: Vae;
  controlnet: object;
  upscale_models: UpscaleModel;
  clip_vision: object;
  style_models: object;
  gligen: object;
  hypernetworks: object;
  diffusion_models: Model;
  text_encoders: Clip;
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
  /** Names of the files of a kind; undefined where the host has no models of the kind at all. */
  files?(kind: keyof HostFiles): readonly string[] | undefined;
  /** Loads a file of a kind that `files` lists. */
  loadFile?<Kind extends keyof HostFiles>(kind: Kind, name: string, signal?: AbortSignal): Promise<HostFiles[Kind]>;
}
