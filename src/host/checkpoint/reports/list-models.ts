import { stat } from "node:fs/promises";
import { LatentkitError } from "../../../base/errors.js";
import { checkOptions, FLAG, FUNCTION, type OptionRules, SIGNAL } from "../../../base/options.js";
import { autoV2, FileHashes } from "../files/file-hashes.js";
import { KIND_FOLDERS, MODELS_RULE, type ModelKind } from "../files/kinds.js";
import { type ModelFile, ModelFolders } from "../files/model-folders.js";
import { StoredHashes } from "../files/stored-hashes.js";
import { openModelFile } from "../recognition/open.js";
import { isPacked } from "../weights/packed-types.js";
import type { StoredWeight } from "../weights/stored.js";
import { familyInWords } from "./family.js";

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
  /** Kind of model that was recognised: "SDXL inpainting", "LoRA (kohya)". Absent where `refusal` is there. */
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
 * are read, but for hashes. Rejects with config.invalid, usage.invalid and the signal's reason; a file that cannot be
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
  const parameters = weights.reduce((sum, { shape }) => sum + shape.reduce((product, side) => product * side, 1), 0);
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

/** A result, or the sentence on why there is none. Rejects with the signal's reason. */
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
