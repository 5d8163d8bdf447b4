import { closeSync, fstatSync, readSync } from "node:fs";
import { LatentkitError } from "../../../base/errors.js";
import { openRegularSync } from "../../../io/regular-file.js";
import { headerLength, LENGTH_BYTES, parseHeader } from "../../../io/safetensors.js";
import { ggufFamily } from "../../foreign-families.js";
import type { FileRefusal } from "../../host.js";
import { clipVisionPart } from "../clip-vision/recognise.js";
import { recogniseModelPatch, requireCheckpoint } from "../families/recognise.js";
import type { ModelKind } from "../files/kinds.js";
import { START_BYTES } from "../files/other-format.js";
import { ipAdapterPart } from "../ip-adapter/recognise.js";
import { requireLora } from "../lora/recognise.js";
import { formatError } from "../recognition/open.js";
import type { ModelHeader } from "../recognition/part.js";
import type { TextEncoderConfig } from "../text-encoder/build.js";
import { type EncoderName, encoderName, recogniseTextEncoders, type TextPart } from "../text-encoder/recognise.js";
import { recogniseControl } from "../unet/controls.js";
import { upscalerPart } from "../upscaler/recognise.js";
import { recogniseVae } from "../vae/recognise.js";
import { applyFormats, joinFactors } from "../weights/factors.js";
import { isGgufStart } from "../weights/gguf/header.js";
import { ARCHITECTURE, GGUF_BEGINNINGS, type GgufContents, ggufContents } from "../weights/gguf/open.js";
import { type NamedFile, readError } from "../weights/stored.js";

/** Effort of checking a file: "quick" skips headers with the usual keys of their kind, and long ones. */
export type Effort = "quick" | "whole";

/** Longest header that a quick look reads: longer ones are those of large models, and of hostile files. */
const LONGEST_QUICK = 2 ** 20;
/** Words of recognition for a model of a family that does not run here. */
const FAMILY = /^an? (\p{Lu}.*) model$/u;
const UNET_MARKS = ["input_blocks.0.0.weight", "down_blocks.0.resnets.0.norm1.weight"];
const OFFSETS = '"data_offsets"';
const LAST_BYTE = /^"data_offsets"\s*:\s*\[\s*\d+\s*,\s*(\d+)\s*\]/;

/** A text encoder of a file, as embeddings have to fit it. */
export type EncoderSize = Pick<TextEncoderConfig, "name"> & { readonly width: number };

/** Facts about a model file from its header. */
export interface FileFacts {
  /** Why it cannot be loaded; undefined if no reason is known. */
  readonly refusal?: FileRefusal;
  /** Those of its text encoders; absent if they were not looked for. */
  readonly encoders?: readonly EncoderSize[];
  /** Names of all its text encoders, if it is a file of them. */
  readonly encoderNames?: readonly EncoderName[];
  /** Family of its diffusion model: "sdxl". */
  readonly family?: string;
}

type Recognised = Omit<FileFacts, "refusal">;

const sizesOf = (encoders: readonly TextPart[]): readonly EncoderSize[] =>
  encoders.flatMap(({ kind, part }) =>
    kind === "clip" ? [{ name: part.config.name, width: part.config.hidden }] : [],
  );

/** Recognition without facts to keep. */
const only =
  (recognise: (file: ModelHeader) => unknown) =>
  (file: ModelHeader): Recognised => {
    recognise(file);
    return {};
  };

function checkpointFacts(file: ModelHeader): Recognised {
  const { family, textEncoders } = requireCheckpoint(file);
  return { family, encoders: sizesOf(textEncoders) };
}

function encoderFacts(file: ModelHeader): Recognised {
  const found = recogniseTextEncoders(file);
  return { encoders: sizesOf(found), encoderNames: found.map(encoderName) };
}

/** Recognition of the kinds that are loaded, by headers alone. */
const RECOGNISE: { readonly [Kind in ModelKind]?: (file: ModelHeader) => Recognised } = {
  checkpoints: checkpointFacts,
  diffusion_models: (file) => ({ family: requireCheckpoint(file).family }),
  text_encoders: encoderFacts,
  vae: only(recogniseVae),
  loras: only(requireLora),
  controlnet: only(recogniseControl),
  upscale_models: only(upscalerPart),
  clip_vision: only(clipVisionPart),
  ipadapter: only(ipAdapterPart),
  model_patches: only(recogniseModelPatch),
};

/** Kinds whose files are recognised by their headers. */
export const RECOGNISED_KINDS = Object.keys(RECOGNISE) as readonly ModelKind[];

/** Parts of keys that files of these kinds have: lists are long, and a header with one of them is not read for them. */
const USUAL: { readonly [Kind in ModelKind]?: readonly string[] } = {
  checkpoints: UNET_MARKS,
  diffusion_models: UNET_MARKS,
  text_encoders: ["token_embedding.weight"],
  vae: ["decoder.conv_in.weight"],
  loras: [".lora_up.weight", ".lora_A.weight", ".lora.up.weight"],
  controlnet: ["zero_convs.0.0.weight", "controlnet_down_blocks.0.weight"],
  clip_vision: ["visual_projection.weight", "visual.proj"],
};

/** Kinds of files with text encoders. */
export const ENCODER_KINDS: ReadonlySet<ModelKind> = new Set(["checkpoints", "text_encoders"]);

/** Reads the facts about a file of a kind; none if the file is gone. Blocks the thread. */
export function factsOf(kind: ModelKind, file: NamedFile, effort: Effort): FileFacts {
  try {
    const descriptor = openRegularSync(file.path);
    try {
      return readFacts(kind, file, descriptor, effort);
    } finally {
      closeSync(descriptor);
    }
  } catch (thrown) {
    const error = thrown instanceof LatentkitError ? thrown : readError(file.name, thrown);
    // a file that is gone is missed when it is loaded
    if (error.code === "file.not-found") return {};
    const [, family] = FAMILY.exec(error.details.received ?? "") ?? [];
    return { refusal: family === undefined ? { error } : { family } };
  }
}

function readFacts(kind: ModelKind, { name, path }: NamedFile, descriptor: number, effort: Effort): FileFacts {
  const { size } = fstatSync(descriptor);
  const start = readAt(descriptor, 0, Math.min(START_BYTES, size));
  const recognise = RECOGNISE[kind];
  if (recognise === undefined) return {};
  if (isGgufStart(start)) {
    const contents = readGguf({ name, path, bytes: size }, descriptor, effort);
    return contents === undefined ? {} : ggufFacts({ name, ...contents }, recognise);
  }
  try {
    const length = headerLength(start.subarray(0, LENGTH_BYTES), size);
    if (effort === "quick" && length > LONGEST_QUICK) return {};
    const header = readAt(descriptor, LENGTH_BYTES, length);
    if (effort === "quick" && isUsual(kind, Buffer.from(header.buffer), size)) return {};
    const { entries, metadata } = parseHeader(header, size);
    const weights = new Map([...entries].map(([key, entry]) => [key, { ...entry, key, file: path }]));
    const file = { name, metadata, weights };
    const joined = joinFactors(file);
    const texts = joined.stored.map(({ from, to }) => Buffer.from(readAt(descriptor, from, to - from)).toString());
    applyFormats(file, joined, texts);
    return recognise({ ...file, weights: joined.weights });
  } catch (thrown) {
    const error = readError(name, thrown);
    throw error.code === "safetensors.invalid" ? formatError(name, error, start, size) : error;
  }
}

/** The contents of a GGUF file; undefined for a header that is too long for a quick look. */
function readGguf(
  file: { readonly name: string; readonly path: string; readonly bytes: number },
  descriptor: number,
  effort: Effort,
): GgufContents | undefined {
  for (const length of effort === "quick" ? GGUF_BEGINNINGS.slice(0, 1) : GGUF_BEGINNINGS) {
    const contents = ggufContents(file, readAt(descriptor, 0, Math.min(length, file.bytes)));
    if (contents !== undefined) return contents;
  }
  return undefined;
}

/** Facts on a GGUF file; the architecture names one of an unknown family. */
function ggufFacts(file: ModelHeader, recognise: (file: ModelHeader) => Recognised): FileFacts {
  try {
    return recognise(file);
  } catch (error) {
    if (!(error instanceof LatentkitError) || error.code !== "model.unsupported") throw error;
    const [, family] = FAMILY.exec(error.details.received ?? "") ?? [];
    return { refusal: { family: family ?? ggufFamily(file.name, file.metadata[ARCHITECTURE]), format: "GGUF" } };
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
