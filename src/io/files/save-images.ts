import { describe, inputError, LatentkitError } from "../../base/errors.js";
import { returnMemory } from "../../tensor/memory-pool.js";
import { itemToBytes, itemToUint16 } from "../../tensor/ops.js";
import { itemValues } from "../../tensor/parts.js";
import { Tensor } from "../../tensor/tensor.js";
import { keysInOrder, printJson } from "../json/lossless.js";
import { EXTENSIONS, type PictureFormat } from "../pictures/format.js";
import { encodeBySharp } from "../pictures/sharp.js";
import { encodeFiltered, encodeHere, encodePng } from "../png/png.js";
import { filterOnDevice, type RawImage } from "../png/raw-image.js";
import { checkTextKey } from "../png/text-chunks.js";
import { counterFiles, type OutputFiles } from "./output-files.js";
import { expandPrefix, resolvePrefix } from "./output-path.js";

// extraPnginfo must not hold `prompt` or `latentkit`: readers would take them for the graph and its receipt.
/** A saved file, relative to the output folder. */
export interface SavedFile {
  readonly filename: string;
  /** With "/"; "" for the output folder itself. */
  readonly subfolder: string;
}

type Texts = readonly (readonly [key: string, text: string])[];

export interface SaveImagesOptions {
  /** Absolute path. */
  readonly outputFolder: string;
  /** Folders and beginning of the names, with %width%, %year% … and, in the names, %batch_num%. */
  readonly prefix: string;
  /** Input of the node that holds the prefix, for messages. */
  readonly prefixInput?: string;
  /** Text between counter and extension: "" or, as ComfyUI's SaveImage writes it, "_". */
  readonly tail?: "" | "_";
  /** Default: PNG files of 8 bits. */
  readonly format?: PictureFormat;
  readonly text?: Texts;
  /** Chooses file names. Default: the next free counter. */
  readonly files?: OutputFiles;
  /** Makes the text "latentkit" of each image. */
  readonly receipt?: (picture: RawImage) => Promise<string | undefined>;
  /** Makes the text "parameters" of the images. */
  readonly parameters?: (size: { width: number; height: number }) => Promise<string | undefined>;
  /** Encodes images in the calling thread; see `OutputHandling`. */
  readonly isBlocking?: boolean;
  readonly now: Date;
  readonly signal: AbortSignal;
}

/** Key of the text that holds a receipt. */
export const RECEIPT_KEY = "latentkit";

const GRAPH_KEY = "prompt";
const PARAMETERS_KEY = "parameters";

const reservedWords = (where: string, key: string) =>
  `${where}: ${GRAPH_KEY} and ${RECEIPT_KEY} are reserved for the graph and its receipt, received ${describe(key)}.`;

/** Throws usage.invalid for a text that would replace the graph or its receipt in files. */
export function refuseReservedKeys(extraPnginfo: unknown): void {
  if (typeof extraPnginfo !== "object" || extraPnginfo === null) return;
  for (const key of [GRAPH_KEY, RECEIPT_KEY])
    if (Object.hasOwn(extraPnginfo, key)) throw new LatentkitError("usage.invalid", reservedWords("extraPnginfo", key));
}

/** Throws value.invalid if a node added such a text while the graph ran, for an image with a receipt. */
function refuseShadows(text: Texts): void {
  const keys = text.map(([key]) => key);
  const isTwice = keys.indexOf(GRAPH_KEY) !== keys.lastIndexOf(GRAPH_KEY);
  if (!isTwice && !keys.includes(RECEIPT_KEY)) return;
  throw new LatentkitError("value.invalid", reservedWords("extra_pnginfo", isTwice ? GRAPH_KEY : RECEIPT_KEY));
}

/**
 * Saves each image of [B, H, W, C] as a file under the next free `<prefix>_<counter>`; nothing is overwritten, even while
 * other processes save into the same folder. Everything is checked before the first file is written.
 * Fails with tensor.bad-shape, path.outside, value.invalid, file.write-failed, picture.needs-sharp, and the signal's reason.
 */
export async function saveImages(images: Tensor, options: SaveImagesOptions): Promise<SavedFile[]> {
  const { outputFolder, tail = "", text = [], files = counterFiles, format = {}, receipt } = options;
  // the calling thread encodes into memory that is used again
  const isBlocking = options.isBlocking === true && !files.keepsBytes;
  const sides = batchSides(images);
  for (const [key] of text) checkTextKey(key);
  if (receipt !== undefined) refuseShadows(text);
  const prefix = expandPrefix(options.prefix, sides, options.now);
  const target = resolvePrefix(outputFolder, prefix, options.prefixInput);
  const ending = `${tail}${EXTENSIONS[format.type ?? "png"]}` as const;
  const parameters = text.some(([key]) => key === PARAMETERS_KEY) ? undefined : await options.parameters?.(sides);
  const common = parameters === undefined ? text : [...text, [PARAMETERS_KEY, parameters] as const];
  const textOf =
    receipt &&
    (async (pixels: RawImage) => {
      const written = await receipt(pixels);
      return written === undefined ? undefined : ([RECEIPT_KEY, written] as const);
    });
  await files.makeFolder(outputFolder, target);
  const saved: SavedFile[] = [];
  for (let index = 0; index < sides.batch; index++) {
    const bytes = await encodeItem(images, index, { format, text: common, textOf, isBlocking });
    options.signal.throwIfAborted();
    const name = target.name.replaceAll("%batch_num%", String(index));
    const filename = await files.writeNumbered(target.folder, name, ending, bytes);
    saved.push({ filename, subfolder: target.subfolder });
    // what sharp makes may be Node's own memory
    if (!files.keepsBytes && ending.endsWith(EXTENSIONS.png)) returnMemory(bytes.buffer);
  }
  return saved;
}

/** Images of a batch as views [H, W, C]; `input` names their input in messages. Fails with tensor.bad-shape. */
export function split(images: Tensor, input = "images"): Tensor[] {
  const { batch } = batchSides(images, input);
  return Array.from({ length: batch }, (_, index) => viewOf(images, index));
}

function batchSides({ shape }: Tensor, input = "images") {
  const [batch, height, width, channels] = shape;
  if (shape.length !== 4 || !batch || !height || !width || !channels || channels > 4) {
    const expected = "a tensor [B, H, W, C] with pixels and 1 to 4 channels";
    throw inputError("tensor.bad-shape", { input }, expected, { shape });
  }
  return { batch, height, width, channels };
}

/** Texts as ComfyUI writes them: `prompt`, then each key of extra_pnginfo in order, all as JSON. */
export function metadataText(prompt: unknown, extraPnginfo: unknown): [string, string][] {
  const text: [string, string][] = [];
  if (prompt !== undefined && prompt !== null) text.push([GRAPH_KEY, printJson(prompt)]);
  if (extraPnginfo === undefined || extraPnginfo === null) return text;
  if (typeof extraPnginfo !== "object" || Array.isArray(extraPnginfo)) {
    throw new LatentkitError("value.invalid", `extra_pnginfo: expected an object, received ${describe(extraPnginfo)}.`);
  }
  for (const key of keysInOrder(extraPnginfo)) {
    text.push([key, printJson((extraPnginfo as Record<string, unknown>)[key])]);
  }
  return text;
}

/** How an image becomes a file. */
export interface ItemEncoding {
  /** Default: a PNG file of 8 bits. */
  readonly format?: PictureFormat;
  readonly text?: Texts;
  /** Makes a further text from the samples that are encoded. */
  readonly textOf?: (pixels: RawImage) => Promise<readonly [key: string, text: string] | undefined>;
  /** Encodes PNG files in the calling thread; see `OutputHandling`. */
  readonly isBlocking?: boolean;
}

const PNG_LEVEL = 4;

/** Encodes image `index` of [B, H, W, C]. */
export async function encodeItem(images: Tensor, index: number, encoding: ItemEncoding): Promise<Buffer> {
  const { format: { type = "png", bitDepth = 8, ...format } = {}, text = [], textOf, isBlocking = false } = encoding;
  const [, height, width, channels] = images.shape as [number, number, number, number];
  const isPng = type === "png";
  const filtered =
    isPng && bitDepth === 8 ? await filterOnDevice(images, index, { width, height, channels }) : undefined;
  const needsBytes = textOf !== undefined || isBlocking || !isPng;
  const pixels = filtered?.pixels ?? pictureOf(images, index, bitDepth, needsBytes);
  const further = pixels instanceof Tensor ? undefined : await textOf?.(pixels);
  const texts = further === undefined ? text : [...text, further];
  const settings = { level: PNG_LEVEL, text: texts, bitDepth };
  try {
    if (filtered !== undefined) return await encodeFiltered(filtered, settings);
    if (pixels instanceof Tensor) return await encodePng(pixels, settings);
    if (!isPng) return await encodeBySharp(pixels, type, format, texts);
    return isBlocking ? encodeHere(pixels, settings) : await encodePng(pixels, settings);
  } finally {
    if (!(pixels instanceof Tensor)) returnMemory(pixels.data.buffer);
  }
}

/** One of the images, as bytes if these are needed. */
function pictureOf(images: Tensor, index: number, bitDepth: 8 | 16, asBytes: boolean): Tensor | RawImage {
  // a deferred image is cheaper to compute as bytes
  if (!asBytes && images.deferred === undefined) return viewOf(images, index);
  const [, height, width, channels] = images.shape as [number, number, number, number];
  const data = bitDepth === 16 ? itemToUint16(images, index) : itemToBytes(images, index);
  return { data, width, height, channels, bitDepth };
}

/** Image `index` of a batch as a view [H, W, C]. */
const viewOf = (images: Tensor, index: number): Tensor => Tensor.from(itemValues(images, index), images.shape.slice(1));
