import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { LatentkitError } from "../../../base/errors.js";
import { headerLength, LENGTH_BYTES, parseHeader } from "../../../io/safetensors/header.js";
import { ggufArchitecture, ggufFamily } from "../../foreign-families.js";
import type { FileRefusal } from "../../types.js";
import type { ModelKind } from "../files/kinds.js";
import type { ModelFolders } from "../files/model-folders.js";
import { START_BYTES } from "../files/other-format.js";
import { controlNetPart } from "../recognition/controlnet.js";
import { requireLora } from "../recognition/lora.js";
import { formatError } from "../recognition/open.js";
import type { ModelFile } from "../recognition/part.js";
import { requireCheckpoint } from "../recognition/recognise.js";
import { recogniseTextEncoders } from "../recognition/text-encoder.js";
import { upscalerPart } from "../recognition/upscaler.js";
import { recogniseVae } from "../recognition/vae.js";
import { checkFormats, joinFactors } from "../weights/factors.js";
import { type NamedFile, readError } from "../weights/stored.js";

type Effort = "quick" | "whole";

/** Files whose answers stay. */
const MOST = 4096;
/** Bytes of a GGUF file in which its architecture is looked for. */
const GGUF_BYTES = 2 ** 16;
/** Words of recognition for a model of a family that does not run here. */
const FAMILY = /^an? (\p{Lu}.*) model$/u;
const UNET_MARKS = ["input_blocks.0.0.weight", "down_blocks.0.resnets.0.norm1.weight"];
const OFFSETS = '"data_offsets"';
const LAST_BYTE = /^"data_offsets"\s*:\s*\[\s*\d+\s*,\s*(\d+)\s*\]/;

/** Recognition of the kinds that are loaded, as far as headers tell. */
const RECOGNISE: { readonly [Kind in ModelKind]?: (file: ModelFile) => unknown } = {
  checkpoints: requireCheckpoint,
  diffusion_models: requireCheckpoint,
  text_encoders: recogniseTextEncoders,
  vae: recogniseVae,
  loras: requireLora,
  controlnet: controlNetPart,
  upscale_models: upscalerPart,
};

/** Parts of keys that files of these kinds have: lists are long, and a header with one of them is not read for them. */
const USUAL: { readonly [Kind in ModelKind]?: readonly string[] } = {
  checkpoints: UNET_MARKS,
  diffusion_models: UNET_MARKS,
  text_encoders: ["token_embedding.weight"],
  vae: ["decoder.conv_in.weight"],
  loras: [".lora_up.weight", ".lora_A.weight", ".lora.up.weight"],
  controlnet: ["zero_convs.0.0.weight", "controlnet_down_blocks.0.weight"],
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
  } catch (thrown) {
    const error = thrown instanceof LatentkitError ? thrown : readError(file.name, thrown);
    // a file that is gone is missed when it is loaded
    if (error.code === "file.not-found") return undefined;
    const [, family] = FAMILY.exec(error.details.received ?? "") ?? [];
    return family === undefined ? { error } : { family };
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
  if (Buffer.from(start.subarray(0, 4)).toString("latin1") === "GGUF") {
    const architecture = ggufArchitecture(readAt(descriptor, 0, Math.min(GGUF_BYTES, size)));
    return { family: ggufFamily(path, architecture), format: "GGUF" };
  }
  const recognise = RECOGNISE[kind];
  if (recognise === undefined) return undefined;
  try {
    const length = headerLength(start.subarray(0, LENGTH_BYTES), size);
    const header = readAt(descriptor, LENGTH_BYTES, length);
    if (effort === "quick" && isUsual(kind, Buffer.from(header.buffer), size)) return undefined;
    const { entries, metadata } = parseHeader(header, size);
    const weights = new Map([...entries].map(([key, entry]) => [key, { ...entry, key, file: path }]));
    const file = { name, metadata, weights };
    const joined = joinFactors(file);
    const texts = joined.stored.map(({ from, to }) => Buffer.from(readAt(descriptor, from, to - from)).toString());
    checkFormats(file, joined, texts);
    recognise({ ...file, weights: joined.weights });
    return undefined;
  } catch (thrown) {
    const error = readError(name, thrown);
    throw error.code === "safetensors.invalid" ? formatError(name, error, start, size) : error;
  }
}

/** Whether a header names a key that files of the kind have, and its last tensor ends where the file does. */
function isUsual(kind: ModelKind, header: Buffer, size: number): boolean {
  const last = header.toString("latin1", Math.max(0, header.lastIndexOf(OFFSETS)));
  const end = LAST_BYTE.exec(last)?.[1];
  if (Number(end) + LENGTH_BYTES + header.length !== size) return false;
  return USUAL[kind]?.some((mark) => header.includes(mark)) === true;
}

function readAt(descriptor: number, from: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  const read = readSync(descriptor, bytes, 0, length, from);
  return bytes.subarray(0, read);
}
