import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { LatentkitError } from "../../../base/errors.js";
import { headerLength, LENGTH_BYTES, parseHeader } from "../../../io/safetensors/header.js";
import { ggufArchitecture, ggufFamily } from "../../foreign-families.js";
import type { FileRefusal } from "../../types.js";
import type { ModelKind } from "../files/kinds.js";
import type { ModelFolders } from "../files/model-folders.js";
import { controlNetPart } from "../recognition/controlnet.js";
import type { ModelFile } from "../recognition/part.js";
import { requireUnet } from "../recognition/recognise.js";
import { recogniseTextEncoders } from "../recognition/text-encoder.js";
import { upscalerPart } from "../recognition/upscaler.js";
import { recogniseVae } from "../recognition/vae.js";
import { joinFactors } from "../weights/factors.js";
import type { NamedFile } from "../weights/stored.js";

type Effort = "quick" | "whole";

/** Files whose answers stay. */
const MOST = 4096;
/** Bytes of a file of another format in which its architecture is looked for. */
const START_BYTES = 2 ** 16;
const UNET_MARKS = ["input_blocks.0.0.weight", "down_blocks.0.resnets.0.norm1.weight"];
const PICKLE: FileRefusal = { what: "pickle of PyTorch" };
/** Kinds of models, by the words of recognition without article and "model". */
const AROUND = /^an? | model$/g;

/** Recognition of the kinds whose headers say enough; files of other kinds show when they are loaded. */
const RECOGNISE: { readonly [Kind in ModelKind]?: (file: ModelFile) => unknown } = {
  checkpoints: requireUnet,
  diffusion_models: requireUnet,
  text_encoders: recogniseTextEncoders,
  vae: recogniseVae,
  controlnet: controlNetPart,
  upscale_models: upscalerPart,
};

/** Parts of keys that files of these kinds have: lists are long, and a header with one of them is not read for them. */
const USUAL: { readonly [Kind in ModelKind]?: readonly string[] } = {
  checkpoints: UNET_MARKS,
  diffusion_models: UNET_MARKS,
  text_encoders: ["token_embedding.weight"],
  vae: ["decoder.conv_in.weight"],
};

/** Answers to which model files a host cannot load, one for each state of a file. */
export class FileRefusals {
  /** Least recently asked for first. */
  readonly #known = new Map<string, FileRefusal | undefined>();
  readonly #offered = new WeakMap<readonly string[], readonly string[]>();

  constructor(private readonly folders: ModelFolders) {}

  /** Why a file of a kind cannot be loaded, by its header; undefined for one that is not there. `quick`: in most cases. */
  of(kind: ModelKind, name: string, effort: Effort = "whole"): FileRefusal | undefined {
    try {
      const file = this.folders.find(kind, name);
      return file === undefined ? undefined : this.#ofFile(kind, file, effort);
    } catch (error) {
      // a name that leads out of the folders, or that several files have, fails when the file is loaded
      if (error instanceof LatentkitError) return undefined;
      throw error;
    }
  }

  /** The names of a kind's files without those that cannot be loaded. */
  offered(kind: ModelKind): readonly string[] {
    const names = this.folders.list(kind);
    const known = this.#offered.get(names) ?? names.filter((name) => this.of(kind, name, "quick") === undefined);
    this.#offered.set(names, known);
    return known;
  }

  #ofFile(kind: ModelKind, file: NamedFile, effort: Effort): FileRefusal | undefined {
    const { path } = file;
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    // a folder of diffusers is read when it is loaded
    if (!stats?.isFile()) return undefined;
    const key = [effort, kind, path, stats.size, stats.mtimeNs, stats.ino].map(String).join("\n");
    if (!this.#known.has(key)) {
      this.#known.set(key, refusalOf(kind, file, effort));
      if (this.#known.size > MOST) this.#known.delete(this.#known.keys().next().value!);
    }
    return this.#known.get(key);
  }
}

function refusalOf(kind: ModelKind, file: NamedFile, effort: Effort): FileRefusal | undefined {
  try {
    // O_NONBLOCK: a pipe that has replaced the file does not wait for its writer
    const descriptor = openSync(file.path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      return readRefusal(kind, file, descriptor, effort);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    // what cannot be read, or is damaged, says so when it is loaded
    if (error instanceof LatentkitError && error.code !== "model.unsupported") return undefined;
    if (error instanceof LatentkitError) return { what: (error.details.received ?? "").replaceAll(AROUND, "") };
    return undefined;
  }
}

function readRefusal(
  kind: ModelKind,
  { name, path }: NamedFile,
  descriptor: number,
  effort: Effort,
): FileRefusal | undefined {
  const { size } = fstatSync(descriptor);
  const start = readAt(descriptor, 0, Math.min(START_BYTES, size));
  const format = Buffer.from(start.subarray(0, 4)).toString("latin1");
  if (format === "GGUF") return { what: ggufFamily(path, ggufArchitecture(start)), format: "GGUF" };
  // no header of so many bytes begins with these
  const isHeader = start[LENGTH_BYTES] === 0x7b;
  if (!isHeader && (format.startsWith("PK") || format.startsWith("\x80"))) return PICKLE;
  const recognise = RECOGNISE[kind];
  if (recognise === undefined) return undefined;
  const length = headerLength(start.subarray(0, LENGTH_BYTES), size);
  const header = readAt(descriptor, LENGTH_BYTES, length);
  if (effort === "quick" && USUAL[kind]?.some((mark) => Buffer.from(header.buffer).includes(mark))) return undefined;
  const { entries, metadata } = parseHeader(header, size);
  const weights = new Map([...entries].map(([key, entry]) => [key, { ...entry, key, file: path }]));
  recognise({ name, metadata, weights: joinFactors({ name, weights }).weights });
  return undefined;
}

function readAt(descriptor: number, from: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  const read = readSync(descriptor, bytes, 0, length, from);
  return bytes.subarray(0, read);
}
