import { closeSync, fstatSync, readSync } from "node:fs";
import { LatentkitError } from "../../../base/errors.js";
import { openRegularSync } from "../../../io/regular-file.js";
import { headerLength, LENGTH_BYTES, parseHeader } from "../../../io/safetensors.js";
import { ggufFamily } from "../../foreign-families.js";
import type { FileRefusal } from "../../host.js";
import { clipVisionPart } from "../clip-vision/recognise.js";
import { networkSizes } from "../diffusion/family.js";
import type { NetworkSizes } from "../diffusion/model.js";
import { type EncoderSize, type EncodingSizes, encodingSizes } from "../families/clip-types.js";
import { recogniseModelPatch, requireCheckpoint } from "../families/recognise.js";
import type { ModelKind } from "../files/kinds.js";
import { START_BYTES } from "../files/other-format.js";
import { ipAdapterPart } from "../ip-adapter/recognise.js";
import { requireLora } from "../lora/recognise.js";
import { formatError } from "../recognition/open.js";
import type { ModelHeader } from "../recognition/part.js";
import { isOwnModel, UNKNOWN_KEYS } from "../recognition/refusal.js";
import { encoderName, recogniseTextEncoders, type TextPart } from "../text-encoder/recognise.js";
import { recogniseControl } from "../unet/controls.js";
import { upscalerPart } from "../upscaler/recognise.js";
import { latentsOf, type VaeConfig } from "../vae/build.js";
import { recogniseVae } from "../vae/recognise.js";
import type { TaesdConfig } from "../vae/taesd.js";
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

/** Facts about a model file from its header. */
export interface FileFacts {
  /** Why it cannot be loaded; undefined if no reason is known. */
  readonly refusal?: FileRefusal;
  /** Its text encoders; absent if they were not looked for. */
  readonly encoders?: readonly EncoderSize[];
  /** Output of the text encoders of a checkpoint; absent for other files, and if it lacks some. */
  readonly encoding?: EncodingSizes;
  /** Family of its diffusion model: "sdxl". */
  readonly family?: string;
  readonly network?: NetworkSizes;
  /** Channels of the latents of its VAE. */
  readonly vaeChannels?: number;
}

type Recognised = Omit<FileFacts, "refusal">;

const sizesOf = (encoders: readonly TextPart[]): readonly EncoderSize[] =>
  encoders.map((encoder) => {
    const { hidden } = encoder.part.config;
    const pooled = encoder.kind === "clip" ? (encoder.part.config.projection?.size ?? hidden) : undefined;
    return { name: encoderName(encoder), width: hidden, pooled };
  });

const channelsOf = (config: VaeConfig | TaesdConfig): number => latentsOf({ normalised: false, ...config }).channels;

/** Recognition without facts to keep. */
const only =
  (recognise: (file: ModelHeader) => unknown) =>
  (file: ModelHeader): Recognised => {
    recognise(file);
    return {};
  };

function checkpointFacts(file: ModelHeader): Recognised {
  const { family, network, textEncoders, encoderCount, clipType, vae } = requireCheckpoint(file);
  const encoders = sizesOf(textEncoders);
  return {
    family,
    encoders,
    encoding: encoders.length === encoderCount ? encodingSizes(encoders, clipType) : undefined,
    network: networkSizes(network, file),
    vaeChannels: vae && channelsOf(vae.config),
  };
}

function modelFacts(file: ModelHeader): Recognised {
  const { family, network } = checkpointFacts(file);
  return { family, network };
}

/** Recognition of the kinds that are loaded, by headers alone. */
const RECOGNISE: { readonly [Kind in ModelKind]?: (file: ModelHeader) => Recognised } = {
  checkpoints: checkpointFacts,
  diffusion_models: modelFacts,
  text_encoders: (file) => ({ encoders: sizesOf(recogniseTextEncoders(file)) }),
  vae: (file) => ({ vaeChannels: channelsOf(recogniseVae(file).part.config) }),
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
    const family = familyIn(error);
    return { refusal: family === undefined ? { error } : { family } };
  }
}

/** Family that an error says a file has; undefined for one that runs here, which the file does not show as it should. */
function familyIn({ details: { received = "" } }: LatentkitError): string | undefined {
  return isOwnModel(received) ? undefined : FAMILY.exec(received)?.[1];
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
    const isUnknown = error.details.received?.startsWith(UNKNOWN_KEYS);
    const family = familyIn(error) ?? (isUnknown ? ggufFamily(file.name, file.metadata[ARCHITECTURE]) : undefined);
    return { refusal: family === undefined ? { error } : { family, format: "GGUF" } };
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
