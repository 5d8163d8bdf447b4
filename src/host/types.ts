import type { Term } from "../tensor/ops.js";
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

/** Estimates of the clean latent that guidance combines, at one noise level. Its tensors are valid only during the call. */
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
  /** The weighted sum of terms, in memory that the next steps of the run use again. */
  sum(terms: readonly Term[]): Tensor;
}

/** Changes of guidance that nodes have added to a model. */
export interface Guidance {
  /** Replaces uncond + (cond - uncond) * cfg: by a tensor, or by the terms of a weighted sum, which a step adds to its own. */
  combine?(step: GuidanceStep): Tensor | readonly Term[] | Promise<Tensor | readonly Term[]>;
  /** Change the guided estimate, in order; it too is valid only during the call. */
  readonly after?: readonly ((denoised: Tensor, step: GuidanceStep) => Tensor | Promise<Tensor>)[];
  /** Returns the denoise mask of one noise level in place of the run's own. */
  mask?(mask: Tensor, sigma: number, sigmas: Float32Array): Tensor;
  /** Conditionings that these functions use: a run sees here which tensors a model holds. */
  readonly conditioning?: readonly Conditioning[];
}

/** One run of a sampler, which a model learns of before its first prediction. */
export interface SamplingRun {
  /** Noise levels by which the run samples: the model's own, or those that a node has given it. */
  readonly sampling: ModelSampling;
  /** Start of the run in the model's units, [B, C, H, W], without noise. */
  readonly latent: Tensor;
  /** [n, H, W], 1 where the latent changes; n masks for n latents, fewer repeat. */
  readonly mask?: Tensor;
  /** Entries that the run moves away from. */
  readonly negative: Conditioning;
  readonly steps: number;
  /** Seed of the run's noise; 0 if absent. */
  readonly seed?: bigint;
}

/** A diffusion model: its noise schedule and, if it can denoise, its prediction. */
export interface Model {
  readonly sampling: ModelSampling;
  /**
   * Returns the estimate of the clean latent of x at noise level sigma. With k entries of cond, entry i belongs to the i-th
   * of k equal parts of x [k * B, C, H, W], so that one call evaluates both sides of guidance. x is valid until the promise
   * settles: sampling writes over it then; copy it to keep it longer. The estimate is only read.
   */
  predict?(x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor>;
  /** Returns the model for one run, whose predictions may depend on it. Absent: they do not. */
  forRun?(run: SamplingRun): Required<Pick<Model, "predict">>;
  /** Returns a small image [B, h, w, 3] of an estimate, which it copies. Absent: one pixel a cell, by the latent's format. */
  preview?(denoised: Tensor): Promise<Tensor>;
  readonly guidance?: Guidance;
  /** Returns a model with a changed network. Absent: its network cannot be changed. */
  patch?(patch: ModelPatch): Model;
}

/** A change of a model's network, under the name of ComfyUI's node and with its inputs. */
export interface ModelPatch {
  readonly node: string;
  readonly inputs: Readonly<Record<string, unknown>>;
}

/** Receives a warning, in the name of the calling node, about a request that the host ignores or changes. */
export type Warn = (message: string) => void;

/** The bridge between pictures and latents; both functions return new tensors. */
export interface Vae {
  /** Pixels along a side of a latent's cell. Default: 8. */
  readonly cell?: number;
  /** Encodes an image [B, H, W, 3] in 0…1 to a latent [B, C, H / cell, W / cell]. */
  encode(image: Tensor, warn?: Warn): Promise<Tensor>;
  /** Decodes a latent [B, C, h, w] to an image [B, cell · h, cell · w, 3] in 0…1. */
  decode(latent: Tensor): Promise<Tensor>;
}

/** SD: one encoder ("l"); SDXL: two ("l", "g"); a language model: none, for it reads a prompt whole. */
export interface Clip {
  readonly encoders: readonly ClipEncoder[];
  /** Encodes a prompt whole, with parentheses as text, not weights. Absent: `encoders` encode it in chunks of 77. */
  encodeText?(text: string): Promise<Conditioning>;
  /** Returns a clip that encodes with an earlier layer, -1 (the last) to -24. Absent: it has one layer. */
  atLayer?(layer: number): Clip;
  /**
   * Encodes texts for encoders beyond CLIP's, by the names that ComfyUI's nodes have for them, with pictures [B, H, W, 3]
   * that these see at their places in the text (`<|image_pad|>`). Absent: it has none.
   */
  encodeTexts?(texts: Readonly<Record<string, string>>, pictures: readonly Tensor[]): Promise<Conditioning>;
  /** Returns the clip of a family whose encoders lie in several files. Absent: encoders stand side by side. */
  joinedWith?(others: readonly Clip[]): Clip;
  /** Returns a clip whose T5 encoders fill prompts to other lengths, in tokens. Absent: it has none. */
  withT5Options?(options: { readonly min_padding: number; readonly min_length: number }): Clip;
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
  /**
   * Looks up a textual inversion by the word after "embedding:". Absent: such words are plain text.
   */
  embedding?(word: string): FoundEmbedding;
  /** Encodes chunks of 77 ids to cond [chunks, 77, dim] and pooled [chunks, dim]: new tensors, which a conditioning takes over. */
  encode(chunks: number[][]): Promise<{ cond: Tensor; pooled?: Tensor }>;
}

/** A textual inversion that a prompt names. */
export interface FoundEmbedding {
  /** They stand for its rows; none if it is left out. */
  readonly ids: readonly number[];
  /** Commas at the word's end, which do not belong to its name. */
  readonly rest: string;
  /** One sentence on why it is left out. */
  readonly warning?: string;
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
  /** Only in checkpoints that take pictures as prompts. */
  clipVision?: ClipVision;
}

/** A model that guides another one by a picture. The host's models find it in the options of a conditioning. */
export interface ControlNet {
  /** Returns the net for one kind of picture, numbered as in ComfyUI; -1 lets the net decide. Absent: it has one kind. */
  ofType?(type: number): ControlNet;
}

/** A control net in the options of a conditioning, under `control`. */
export interface Control {
  readonly net: ControlNet;
  /** [B, H, W, C] in 0…1. */
  readonly hint: Tensor;
  readonly strength: number;
  /** Parts of sampling, from 0 (noise) to 1 (image), between which it counts. */
  readonly start: number;
  readonly end: number;
  /** Encodes the hint for nets that work on latents. */
  readonly vae?: Vae;
  /** Another control net that counts as well. */
  readonly previous?: Control;
}

/** An encoder of pictures. */
export interface ClipVision {
  /** Encodes an image [B, H, W, 3] in 0…1, cut to its middle square or squeezed into one. */
  encode(image: Tensor, crop: "center" | "none", signal?: AbortSignal): Promise<object>;
}

/** An adapter that shows pictures to a model, which read as prompts do (IPAdapter). */
export interface ImageAdapter {
  /** Whether it is for SDXL; else for Stable Diffusion 1. */
  readonly isSdxl: boolean;
  /** Encoder that was loaded with it. */
  readonly encoder?: ClipVision;
  /** Returns the adapter with an encoder. */
  withEncoder(encoder: ClipVision): ImageAdapter;
  /**
   * Embeds pictures [n, H, W, C] in 0…1, each to its part of [n, …]; their pixels count times those of a mask [1 or n, H, W],
   * if there is one.
   */
  embed(encoder: ClipVision, pictures: Tensor, mask?: Tensor, signal?: AbortSignal): Promise<Tensor>;
  /** Embeds what stands for a picture on the negative side, [1, …]; it may do so without an encoder. */
  embedNone(encoder: ClipVision | undefined, signal?: AbortSignal): Promise<Tensor>;
  /** Returns the model that sees pictures, beside those that it sees already. */
  show(model: Model, pictures: ShownPictures, signal?: AbortSignal): Promise<Model>;
}

/** Pictures that an adapter shows to a model, and how. */
export interface ShownPictures {
  /** As `embed` makes them, [n, …]. */
  readonly embeds: Tensor;
  /** Those that the negative side sees, [n, …]. */
  readonly negative: Tensor;
  /** Whether latent i sees picture i, the last one repeated; else each latent sees all. */
  readonly isPerLatent: boolean;
  /** Weight at each transformer in the order input, middle, output: 16 of Stable Diffusion 1, 11 of SDXL. */
  readonly weights: readonly number[];
  /** Whether the negative side sees the pictures, and the positive one nothing. */
  readonly isSwapped: boolean;
  /** Whether the transformers in the middle see them. */
  readonly hasMiddle: boolean;
  /** How a weight acts on keys and values. */
  readonly scaling: "V only" | "K+V" | "K+V w/ C penalty" | "K+mean(V) w/ C penalty";
  /** Parts of sampling, from 0 (noise) to 1 (image), between which they count. */
  readonly start: number;
  readonly end: number;
  /** Where they count, [n, H, W]; mask i for latent i, the last one repeated. */
  readonly mask?: Tensor;
  readonly maskMethod: "bilinear" | "bicubic";
}

/** A model that turns an encoded picture into words of a prompt. */
export interface StyleModel {
  /** Returns tokens [1, tokens, dim] for an output of ClipVision. */
  tokens(picture: object): Promise<Tensor>;
}

/** A change of the weights of models and clips. */
export interface Lora {
  /** A warning about the parts that a model and a clip cannot use; undefined if they can use all. */
  unmatched?(model: Model, clip: Clip | undefined): string | undefined;
  apply(model: Model, clip: Clip | undefined, strengths: { model: number; clip: number }): [Model, Clip?];
}

/** A model that enlarges images by a whole factor. */
export interface UpscaleModel {
  readonly scale: number;
  /** Enlarges an image [B, H, W, 3] in 0…1. */
  upscale(image: Tensor, signal?: AbortSignal): Promise<Tensor>;
}
