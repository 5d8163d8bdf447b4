import { describe, inputError, LatentkitError } from "../../base/errors.js";
import { returnMemory } from "../../tensor/memory.js";
import { itemToBytes } from "../../tensor/ops.js";
import { Tensor } from "../../tensor/tensor.js";
import { keysInOrder } from "../json/lossless.js";
import { printJson } from "../json/print.js";
import { filterOnDevice } from "../png/filtered-image.js";
import { encodeFiltered, encodeHere, encodePng, type RawImage } from "../png/png.js";
import { checkTextKey } from "../png/text-chunks.js";
import { counterFiles, type OutputFiles } from "./output-files.js";
import { expandPrefix, resolvePrefix } from "./output-path.js";

// decision 168
/** A saved file, relative to the output folder. */
export interface SavedFile {
  readonly filename: string;
  /** With "/"; "" for the output folder itself. */
  readonly subfolder: string;
}

export interface SaveImagesOptions {
  /** Absolute path. */
  readonly outputFolder: string;
  /** Folders and beginning of the names, with %width%, %year% … and, in the names, %batch_num%. */
  readonly prefix: string;
  /** Input of the node that holds the prefix, for messages. */
  readonly prefixInput?: string;
  /** Text between counter and ".png": "" or, as ComfyUI's SaveImage writes it, "_". */
  readonly tail?: "" | "_";
  readonly text?: readonly (readonly [string, string])[];
  /** Chooses file names; the next free counter where absent. */
  readonly files?: OutputFiles;
  /** Makes the text of the chunk "latentkit" for each image. */
  readonly receipt?: (picture: RawImage) => Promise<string | undefined>;
  /** Encodes images in the calling thread; see `OutputHandling`. */
  readonly encodesHere?: boolean;
  readonly now: Date;
  readonly signal: AbortSignal;
}

const LEVEL = 4;

/** Key of the text chunk that holds a receipt. */
export const RECEIPT_KEY = "latentkit";

const GRAPH_KEY = "prompt";

const reservedWords = (where: string, key: string) =>
  `${where}: expected keys other than ${GRAPH_KEY} and ${RECEIPT_KEY}, which hold the graph and its receipt, received ${describe(key)}.`;

/** Throws usage.invalid for a text that would replace the graph or its receipt in PNG files. */
export function refuseReservedKeys(extraPnginfo: unknown): void {
  if (typeof extraPnginfo !== "object" || extraPnginfo === null) return;
  for (const key of [GRAPH_KEY, RECEIPT_KEY])
    if (Object.hasOwn(extraPnginfo, key)) throw new LatentkitError("usage.invalid", reservedWords("extraPnginfo", key));
}

/** Throws value.invalid where a node has added such a text while the graph ran, for an image with a receipt. */
function refuseShadows(text: readonly (readonly [string, string])[]): void {
  const keys = text.map(([key]) => key);
  const isTwice = keys.indexOf(GRAPH_KEY) !== keys.lastIndexOf(GRAPH_KEY);
  if (!isTwice && !keys.includes(RECEIPT_KEY)) return;
  throw new LatentkitError("value.invalid", reservedWords("extra_pnginfo", isTwice ? GRAPH_KEY : RECEIPT_KEY));
}

/**
 * Saves each image of [B, H, W, C] as a PNG file under the next free `<prefix>_<counter>`; nothing is overwritten, also
 * while other processes save into the same folder. Everything is checked before the first file is written.
 * Fails with tensor.bad-shape, path.outside, value.invalid, file.write-failed and run.interrupted.
 */
export async function saveImages(images: Tensor, options: SaveImagesOptions): Promise<SavedFile[]> {
  const { outputFolder, tail = "", text = [], files = counterFiles } = options;
  // the calling thread encodes into memory that is used again
  const encodesHere = options.encodesHere === true && !files.keepsBytes;
  const sides = batchSides(images);
  for (const [key] of text) checkTextKey(key);
  if (options.receipt !== undefined) refuseShadows(text);
  const prefix = expandPrefix(options.prefix, sides, options.now);
  const target = resolvePrefix(outputFolder, prefix, options.prefixInput);
  await files.makeFolder(outputFolder, target);
  const saved: SavedFile[] = [];
  for (let index = 0; index < sides.batch; index++) {
    const filtered = await filterOnDevice(images, index, sides);
    // a receipt hashes the very bytes that are encoded
    const pixels = filtered?.pixels ?? pictureOf(images, index, options.receipt !== undefined || encodesHere);
    const receipt = pixels instanceof Tensor ? undefined : await options.receipt?.(pixels);
    const texts = receipt === undefined ? text : [...text, [RECEIPT_KEY, receipt] as const];
    const settings = { level: LEVEL, text: texts };
    const isHere = encodesHere && filtered === undefined && !(pixels instanceof Tensor);
    const bytes = isHere
      ? encodeHere(pixels, settings)
      : await (filtered === undefined ? encodePng(pixels, settings) : encodeFiltered(filtered, settings));
    if (!(pixels instanceof Tensor)) returnMemory(pixels.data.buffer);
    if (options.signal.aborted) throw new LatentkitError("run.interrupted", "The run was interrupted.");
    const name = target.name.replaceAll("%batch_num%", String(index));
    saved.push({ filename: await files.writeNumbered(target.folder, name, tail, bytes), subfolder: target.subfolder });
    if (!files.keepsBytes) returnMemory(bytes.buffer);
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

function viewOf({ data, shape }: Tensor, index: number): Tensor {
  const [, height, width, channels] = shape as [number, number, number, number];
  const size = height * width * channels;
  return Tensor.from(data.subarray(index * size, (index + 1) * size), [height, width, channels]);
}

/** One of the images, as bytes where a receipt or the calling thread reads these. */
function pictureOf(images: Tensor, index: number, asBytes: boolean): Tensor | RawImage {
  // a deferred image is cheaper to compute as bytes
  if (!asBytes && images.deferred === undefined) return viewOf(images, index);
  const [, height, width, channels] = images.shape as [number, number, number, number];
  return { data: itemToBytes(images, index), width, height, channels };
}

/** Text chunks as ComfyUI writes them: `prompt`, then each key of extra_pnginfo in order, all as JSON. */
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
