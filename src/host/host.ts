import type { LatentkitError } from "../base/errors.js";
import type {
  Checkpoint,
  Clip,
  ClipVision,
  ControlNet,
  ImageAdapter,
  Lora,
  Model,
  StyleModel,
  UpscaleModel,
  Vae,
  Warn,
} from "./types.js";

/** Kinds of files that have a diffusion model. */
export type ModelFileKind = "checkpoints" | "diffusion_models";

/** A file that has text encoders, as a graph names it. */
export interface EncoderFile {
  readonly kind: "checkpoints" | "text_encoders";
  readonly name: string;
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
  ipadapter: ImageAdapter;
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
  /** How attention was computed on a GPU, "fused" by one operator or "plain"; on a CPU, "tiles": the VAE's convolutions. */
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

/** Files that one output of a loader gives: a model, the text encoders of a clip, or a VAE. */
export interface LoadedPart {
  readonly type: "MODEL" | "CLIP" | "VAE";
  readonly files: readonly { readonly kind: keyof HostFiles | "checkpoints"; readonly name: string }[];
  /** Further inputs of the loader's node, as for `loadFile`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Maker of a conditioning or a latent: a clip, a model or a VAE; or the places at which a node puts references. */
export type GivenPart = LoadedPart | { readonly type: "reference_latents_method"; readonly places: string };

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
   * files are not among `files` and `checkpoints`, unless it is only the `settings` that do not fit, as for `loadFile`. Absent:
   * it shows when the file is loaded.
   */
  refusal?(
    kind: keyof HostFiles | "checkpoints",
    name: string,
    settings?: Readonly<Record<string, string>>,
  ): FileRefusal | undefined;
  /** Family of the diffusion model of a file, "sdxl", as far as its header says. Absent: it shows when the file is loaded. */
  familyOf?(kind: ModelFileKind, name: string): string | undefined;
  /**
   * Error with which a run would fail because a model or VAE cannot take what `given` makes, or, without `given`, because its
   * file lacks it; undefined if the headers of the files show none. Absent: such errors show in the run.
   */
  misfit?(taker: LoadedPart, given?: GivenPart): LatentkitError | undefined;
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
