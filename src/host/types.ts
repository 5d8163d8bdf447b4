import type { LatentkitError } from "../base/errors.js";
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
  /** Encodes an image [B, H, W, 3] in 0…1 to a latent [B, C, H/8, W/8]. */
  encode(image: Tensor, warn?: Warn): Promise<Tensor>;
  /** Decodes a latent [B, C, h, w] to an image [B, 8h, 8w, 3] in 0…1. */
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
   * that these see. Absent: it has none.
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

/** A file that has text encoders, as a graph names it. */
export interface EncoderFile {
  readonly kind: "checkpoints" | "text_encoders";
  readonly name: string;
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

/**
 * Kinds of model files beside checkpoints, by the names of ComfyUI's folders, and the types that they are loaded as. An object of a
 * host has a method or a class of its own: a cache would store plain data, and the host would not see the same object again.
 */
export interface HostFiles {
  loras: Lora;
  vae: Vae;
  controlnet: ControlNet;
  upscale_models: UpscaleModel;
  clip_vision: ClipVision;
  style_models: StyleModel;
  gligen: object;
  hypernetworks: object;
  diffusion_models: Model;
  model_patches: object;
  text_encoders: Clip;
}

/** Names in a graph by which a host knows the model files of a picture. */
export interface NamedModels {
  readonly files: readonly { readonly kind: keyof HostFiles | "checkpoints"; readonly name: string }[];
  /** Texts that may be prompts, for these name embeddings. */
  readonly texts: readonly string[];
}

/** The model files of a picture, and how their networks ran. */
export interface Provenance {
  /** SHA-256 of each file, in hex, by kind and name: "loras/ink/wash.safetensors". Missing files are left out. */
  readonly models: Readonly<Record<string, string>>;
  /** Absent if none of their networks has run in this process: the picture came from a cache. */
  readonly runtime?: RuntimeRecord;
}

/** The program that ran networks, and its settings. */
export interface RuntimeRecord {
  readonly name: string;
  readonly version: string;
  readonly provider: string;
  /** Name and driver of the GPU, if the system reports them. */
  readonly adapter?: string;
  /** How attention was computed on a GPU: "fused" by one operator, or "plain", written out. */
  readonly form?: string;
  readonly threads: number;
  /** Way in which the weights were held, by network: "UNet of anime.safetensors". */
  readonly plans: Readonly<Record<string, string>>;
}

/** Something that the models of some hosts can do beside sampling, encoding and decoding. */
export type HostAbility = "patches" | "texts" | "clip-vision";

/** Why a host cannot load a model file: its model is of a family that the host does not run, or loading it fails so. */
export type FileRefusal =
  | {
      /** Family of the model: "Flux". */
      readonly family: string;
      /** Format of the file, if it is another one than the host reads: "GGUF". */
      readonly format?: string;
    }
  | { readonly error: LatentkitError };

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
  loadCheckpoint(name: string, signal?: AbortSignal, warn?: Warn): Promise<Checkpoint>;
  /**
   * Name among `files`, or `checkpoints`, of the file that a graph means: without its folder, say. Absent: names are exact.
   */
  fileOf?(kind: keyof HostFiles | "checkpoints", name: string): string | undefined;
  /** Names of the files of a kind; undefined if the host has no models of the kind at all. */
  files?(kind: keyof HostFiles): readonly string[] | undefined;
  /** Loads a file of a kind that `files` lists. `settings` are further inputs of the loader's node, by their names. */
  loadFile?<Kind extends keyof HostFiles>(
    kind: Kind,
    name: string,
    signal?: AbortSignal,
    settings?: Readonly<Record<string, string>>,
    warn?: Warn,
  ): Promise<HostFiles[Kind]>;
  /**
   * Why a file cannot be loaded, as far as its name and its header say; undefined if nothing speaks against it. Such
   * files are not among `files` and `checkpoints`. Absent: it shows when the file is loaded.
   */
  refusal?(kind: keyof HostFiles | "checkpoints", name: string): FileRefusal | undefined;
  /**
   * Reads the headers of files that have come or changed, without blocking the thread, so that `checkpoints`, `files` and
   * `refusal` know them. Resolves within a second or so, to whether all have been read. Absent: these read them.
   */
  refresh?(): Promise<boolean>;
  /**
   * Abilities of its models. Absent: graphs are not refused for lack of one. Counts only as the host's own, non-enumerable
   * property: a host made from another one's has to declare it again.
   */
  readonly abilities?: readonly HostAbility[];
  /**
   * Sentences on what of a prompt would be left out, and errors with which encoding it would fail, as far as names and
   * headers say. `models`: files whose text encoders will read it. Absent: they show when it is encoded.
   */
  promptWarnings?(text: string, models: readonly EncoderFile[]): readonly (string | LatentkitError)[];
  /** Returns the facts for receipts about the models that these names mean. Absent: receipts do not report models. */
  provenance?(named: NamedModels, signal?: AbortSignal): Promise<Provenance>;
  /** Ends what the host has started. Absent: there is nothing to end. */
  close?(): Promise<void>;
}
