import { stat } from "node:fs/promises";
import { describe, LatentkitError } from "../../../base/errors.js";
import { checkOptions, FLAG, FUNCTION, type OptionRules, SIGNAL } from "../../../base/options.js";
import { clipVisionPart } from "../clip-vision/recognise.js";
import type { RecognisedCheckpoint } from "../diffusion/family.js";
import { recogniseCheckpoint, recogniseModelPatch } from "../families/recognise.js";
import { autoV2, FileHashes, StoredHashes } from "../files/file-hashes.js";
import { KIND_FOLDERS, KIND_WORDS, MODELS_RULE, type ModelKind } from "../files/kinds.js";
import { type ModelFile, ModelFolders } from "../files/model-folders.js";
import { ipAdapterPart } from "../ip-adapter/recognise.js";
import { refuseUnknown } from "../lora/changes.js";
import { recogniseLora } from "../lora/recognise.js";
import { openModelFile } from "../recognition/open.js";
import { kindInWords } from "../recognition/refusal.js";
import { recogniseTextEncoders } from "../text-encoder/recognise.js";
import { type RecognisedControl, recogniseControl } from "../unet/controls.js";
import { WORDS } from "../unet/stable-diffusion.js";
import { upscalerPart } from "../upscaler/recognise.js";
import { latentsOf } from "../vae/build.js";
import { type RecognisedVae, recogniseVae } from "../vae/recognise.js";
import { taesdPart } from "../vae/taesd.js";
import { isPacked, type StoredWeight, unsupported, valuesIn, type WeightFile } from "../weights/stored.js";
import { readValues } from "../weights/values.js";

/** Options of `listModels`. */
export interface ListModelsOptions {
  /** ComfyUI's `models` folder, or several, or files `extra_model_paths.yaml`. */
  readonly models: string | readonly string[];
  /** Whether files are hashed, which takes a second for each GB or two; hashes are kept for later. True by default. */
  readonly hashes?: boolean;
  /** Receives the number of files that are done, and the name of the one that is read next. */
  readonly onProgress?: (progress: ListProgress) => void;
  /** Aborts the list. */
  readonly signal?: AbortSignal;
}

/** Progress of `listModels`. */
export interface ListProgress {
  readonly done: number;
  readonly total: number;
  readonly name: string;
}

/** A model file of a user. */
export interface ListedModel {
  /** ComfyUI's name of the folder. */
  readonly kind: ModelKind;
  /** Relative to a folder of the kind, with "/". */
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  /** Kind of model that was recognised: "SDXL inpainting", "LoRA (kohya)". Absent if `refusal` is there. */
  readonly family?: string;
  /** One sentence on why it cannot be loaded. */
  readonly refusal?: string;
  /** Types of its floats, as .safetensors files name them, that of most bytes first. */
  readonly dtypes: readonly string[];
  /** Number of its values; absent for other formats. */
  readonly parameters?: number;
  /** In hex; absent without `hashes`, and for a file that cannot be read. */
  readonly sha256?: string;
  /** First 10 digits of `sha256`, by which Civitai finds a model. */
  readonly autoV2?: string;
}

const RULES: OptionRules<ListModelsOptions> = {
  models: MODELS_RULE,
  hashes: FLAG,
  onProgress: FUNCTION,
  signal: SIGNAL,
};

/**
 * Lists the model files of a user's folders by kind and name, each recognised as the checkpoint host would. Only headers
 * are read, except for hashes. Rejects with config.invalid, usage.invalid and the signal's reason; a file that cannot be
 * loaded has its reason as `refusal`.
 */
export async function listModels(options: ListModelsOptions): Promise<ListedModel[]> {
  checkOptions("listModels", options, RULES, ["models"]);
  const { models, hashes = true, onProgress, signal } = options;
  const folders = new ModelFolders(models);
  const fileHashes = hashes ? new FileHashes(new StoredHashes()) : undefined;
  const kinds = Object.keys(KIND_FOLDERS) as ModelKind[];
  const files = kinds.flatMap((kind) => folders.list(kind).flatMap((name) => folders.find(kind, name) ?? []));
  const listed: ListedModel[] = [];
  for (const [done, file] of files.entries()) {
    signal?.throwIfAborted();
    onProgress?.({ done, total: files.length, name: file.name });
    const model = await describeFile(file);
    const sha256 = fileHashes && (await orMessage(() => fileHashes.sha256(file.path, signal), signal));
    if (sha256 === undefined) listed.push(model);
    else if (typeof sha256 === "object") listed.push({ ...model, refusal: model.refusal ?? sha256.message });
    else listed.push({ ...model, sha256, autoV2: autoV2(sha256) });
  }
  return listed;
}

/** Recognises a model file by its header. Never rejects for a file that cannot be loaded. @internal */
export async function describeFile(model: ModelFile): Promise<ListedModel> {
  const { kind, name, path } = model;
  const file = await orMessage(() => openModelFile({ name, path }));
  if ("message" in file) return refusedFile(model, file.message);
  const unread = { kind, name, path, bytes: file.bytes };
  const weights = [...file.weights.values()];
  const parameters = weights.reduce((sum, { shape }) => sum + valuesIn(shape), 0);
  const read = { ...unread, dtypes: dtypesOf(weights), parameters };
  const family = await orMessage(() => familyInWords(kind, name, file));
  return typeof family === "string" ? { ...read, family } : { ...read, refusal: family.message };
}

/** A model file that cannot be opened. @internal */
export async function refusedFile({ kind, name, path }: ModelFile, refusal: string): Promise<ListedModel> {
  const bytes = (await stat(path).catch(() => undefined))?.size ?? 0;
  return { kind, name, path, bytes, dtypes: [], refusal };
}

function dtypesOf(weights: readonly StoredWeight[]): string[] {
  const bytes = new Map<string, number>();
  // some files have numbers of positions beside their weights
  const floats = weights.filter(({ dtype }) => /^B?F/.test(dtype) || isPacked(dtype));
  for (const { dtype, from, to } of floats) bytes.set(dtype, (bytes.get(dtype) ?? 0) + to - from);
  return [...bytes].sort(([, a], [, b]) => b - a).map(([dtype]) => dtype);
}

/** A result, or a sentence that says why there is none. Rejects with the signal's reason. */
async function orMessage<Result>(
  make: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result | { readonly message: string }> {
  try {
    return await make();
  } catch (error) {
    if (signal?.aborted || !(error instanceof LatentkitError)) throw error;
    return { message: error.message };
  }
}

const LANGUAGE_MODELS = { qwen3: "Qwen3", "qwen2.5-vl": "Qwen2.5-VL", t5: "T5" } as const;

/**
 * Recognises a model file of a folder, in words: "SDXL inpainting", "LoRA (kohya)". Throws model.unsupported and
 * model.invalid if the host would not load it.
 */
export async function familyInWords(kind: ModelKind, name: string, file: WeightFile): Promise<string> {
  switch (kind) {
    case "checkpoints":
    case "diffusion_models":
      return checkpointInWords(await recogniseCheckpoint(file, readValues));
    case "text_encoders":
      return `text encoder ${recogniseTextEncoders(file)
        .map(({ kind, part }) => (kind === "clip" ? part.config.name : LANGUAGE_MODELS[kind]))
        .join(" and ")}`;
    case "vae":
      return vaeInWords(recogniseVae(file));
    case "vae_approx":
      return taesdPart(file) === undefined ? vaeInWords(recogniseVae(file)) : TINY;
    case "loras":
      return loraInWords(file);
    case "controlnet":
      return controlInWords(recogniseControl(file));
    case "upscale_models": {
      const { config } = upscalerPart(file);
      return `${config.kind === "rrdb" ? "ESRGAN" : "compact RealESRGAN"} x${config.scale}`;
    }
    case "clip_vision":
      return `CLIP vision ViT-${clipVisionPart(file).config.name}/14`;
    case "ipadapter": {
      const { projection, isSdxl } = ipAdapterPart(file);
      return `IPAdapter of ${isSdxl ? "SDXL" : "SD 1"} (${projection.config.kind})`;
    }
    case "model_patches": {
      const { family, part } = recogniseModelPatch(file);
      if (family === "qwen-image") return "ControlNet of Qwen-Image (DiffSynth)";
      return `ControlNet of Z-Image (Fun), ${part.config.channels} channels`;
    }
    case "embeddings":
      return embeddingInWords(file);
    default:
      throw new LatentkitError(
        "model.unsupported",
        `Model ${describe(name)}: latentkit cannot load ${KIND_WORDS[kind]}.`,
      );
  }
}

function checkpointInWords({ words: family, sampling, inpaint, textEncoders, vae }: RecognisedCheckpoint): string {
  const { prediction, latentFormat } = sampling;
  const words = [
    family,
    ...(prediction === "v" || prediction === "edm-v" ? ["v"] : []),
    ...(latentFormat === "SDXL_Playground_2_5" ? ["Playground 2.5"] : []),
    ...(inpaint ? ["inpainting"] : []),
  ].join(" ");
  const absent = [...(textEncoders.length === 0 ? ["text encoder"] : []), ...(vae === undefined ? ["VAE"] : [])];
  return absent.length === 0 ? words : `${words}, without ${absent.join(" and ")}`;
}

function controlInWords(control: RecognisedControl): string {
  if (control.kind === "lora") return `Control-LoRA of ${control.part.isSdxl ? WORDS.sdxl : `${WORDS.sd1} or 2`}`;
  if (control.kind === "t2i") {
    const { unshuffle, kind } = control.part.config;
    return `T2I-Adapter of ${unshuffle === 8 ? WORDS.sd1 : WORDS.sdxl}${kind === "light" ? ", light" : ""}`;
  }
  const { config, isDifference } = control.part;
  const family = config.labelDim !== undefined ? "sdxl" : config.linearProjection ? "sd2" : "sd1";
  const kinds = config.union === undefined ? "" : `, ${config.union.types} kinds of pictures`;
  return `ControlNet of ${WORDS[family]}${kinds}${isDifference ? ", as differences" : ""}`;
}

const TINY = "tiny autoencoder (TAESD)";

function vaeInWords({ kind, part }: RecognisedVae): string {
  if (kind === "taesd") return TINY;
  if (part.config.family === "wan") return "VAE of Wan 2.1 and Qwen-Image";
  const { channels } = latentsOf(part.config);
  return channels === 4 ? "VAE" : `VAE, ${channels} channels`;
}

/** Ways of training programs to name layers, by the beginnings of those names. */
const LORA_STYLES = [
  ["kohya", /^lora_(?:unet|te\d?)_/],
  ["OneTrainer", /^lora_transformer_/],
  ["LyCORIS", /^lycoris_/],
  ["XLabs", /^(?:double|single)_blocks\.\d+\.processor\./],
  ["PEFT", /^base_model\./],
  ["ai-toolkit", /^diffusion_model\./],
  ["diffusers", /^(?:unet|transformer|text_encoder(?:_[23])?|down_blocks|mid_block|up_blocks)\./],
] as const;

/** Forms of LoRAs by a tensor that each has. */
const FORMS = [
  ["up", "LoRA"],
  ["mid", "LoCon"],
  ["hada_", "LoHa"],
  ["lokr_", "LoKr"],
] as const;

async function loraInWords(file: WeightFile): Promise<string> {
  const lora = await recogniseLora(file, readValues);
  const { modules } = lora;
  refuseUnknown(lora, modules);
  const names = [...modules.keys()];
  const roles = new Set([...modules.values()].flatMap(({ tensors }) => [...tensors.keys()]));
  const has = (beginning: string) => [...roles].some((role) => role.startsWith(beginning));
  const style = LORA_STYLES.find(([, beginning]) => names.some((name) => beginning.test(name)))?.[0] ?? "plain names";
  const forms = FORMS.filter(([beginning]) => has(beginning)).map(([, form]) => form);
  return `${forms.join(", ") || "LoRA of differences"} (${style}${roles.has("dora_scale") ? ", DoRA" : ""})`;
}

function embeddingInWords({ path, weights }: WeightFile): string {
  const named = weights.get("clip_g") ?? weights.get("clip_l") ?? weights.get("emb_params");
  const [only] = weights.values();
  const rows = named ?? (weights.size === 1 ? only : undefined);
  if (rows === undefined || rows.shape.length < 1 || rows.shape.length > 2)
    throw unsupported(path, "an embedding", kindInWords(weights));
  const tokens = rows.shape.length === 1 ? 1 : rows.shape[0]!;
  const family = weights.has("clip_g") ? " of SDXL" : "";
  return `embedding${family}, ${tokens} ${tokens === 1 ? "token" : "tokens"} of ${rows.shape.at(-1)}`;
}
