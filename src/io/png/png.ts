import { endianness } from "node:os";
import { types } from "node:util";
import { bufferOf } from "../../base/bytes.js";
import { LatentkitError, reasonOf, valueError } from "../../base/errors.js";
import { CHECKED_LATER, checkOptions, type OptionRules } from "../../base/options.js";
import type { NativeBindings } from "../../native/bindings.js";
import { loadNative } from "../../native/load.js";
import { returnMemory, takeMemory } from "../../tensor/memory-pool.js";
import { fromBytes } from "../../tensor/ops.js";
import { badShape, type EncodePngOptions, Tensor } from "../../tensor/tensor.js";
import { type FilteredImage, filterOnDevice, type RawImage } from "./raw-image.js";
import { checkTexts, isInternational, readPngTexts, withInternationalTexts } from "./text-chunks.js";

/** A decoded PNG: rows from the top, the samples of a pixel next to each other. */
export interface DecodedImage {
  width: number;
  height: number;
  /** 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA; a palette is expanded. */
  channels: number;
  /** 8, or 16 with a Uint16Array. */
  bitDepth: number;
  data: Uint8Array | Uint16Array;
  /** Text chunks by key; of several with one key, the last. */
  text: Record<string, string>;
}

/** Frames of one file, one after the other in `data`. */
export interface DecodedFrames extends Omit<DecodedImage, "text"> {
  frames: number;
  /** The alpha comes from one transparent colour of a grey or RGB file. */
  isKeyed: boolean;
}

/** Pixels as `decodePng` returns them, with numbers as samples of 16 bits. */
export interface PixelImage extends Omit<RawImage, "data"> {
  readonly data: Uint8Array | Uint16Array;
}

export const ENCODE_RULES: OptionRules<EncodePngOptions> = {
  level: CHECKED_LATER,
  text: ["texts by key, or a list of pairs", (value) => typeof value === "object" && value !== null],
  bitDepth: ["8 or 16", (value) => value === 8 || value === 16],
};

/** Limit of pixels, checked before anything is allocated. */
export const MAX_PIXELS = 2 ** 27;

/** Limit of a side in the PNG format. */
const MAX_SIDE = 2 ** 31 - 1;

const IS_LITTLE_ENDIAN = endianness() === "LE";

const MEMORY_STEP = 2 ** 16;

/** Bytes of a text chunk besides its text: length, name, checksum, and the NUL after the key. */
const TEXT_OVERHEAD = 13;

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/**
 * Encodes an image as a PNG file of 8 or 16 bits, off the event loop. A Tensor is [H, W], [H, W, C] or [1, H, W, C] in
 * 0…1, times 255, clipped and truncated; with 16 bits rounded. Fails with value.invalid, value.out-of-range or
 * tensor.bad-shape.
 */
export async function encodePng(image: Tensor | PixelImage, options: EncodePngOptions = {}): Promise<Buffer> {
  checkOptions("encodePng", options, ENCODE_RULES);
  const source = image instanceof Tensor ? image : toRawImage(image);
  const sides = source instanceof Tensor ? tensorSides(source) : rawSides(source);
  const { level, latin, international } = settingsOf(options);
  const isTensor = source instanceof Tensor;
  const bitDepth = isTensor ? options.bitDepth : source.bitDepth;
  if (options.bitDepth === 16 && bitDepth !== 16) {
    throw new LatentkitError("value.invalid", "PNG image: expected a Tensor for 16 bits, received bytes.");
  }
  const filtered = isTensor && bitDepth !== 16 ? await filterOnDevice(source, 0, sides) : undefined;
  if (filtered !== undefined) return encodeFiltered(filtered, options);
  const { width, height, channels } = sides;
  const file = await loadNative().encodePng(source.data, width, height, channels, level, latin, bitDepth);
  return withInternationalTexts(bufferOf(file), international);
}

/** An image of 16-bit numbers as bytes; any other one itself. */
export function toRawImage(image: PixelImage): RawImage {
  if (!types.isUint16Array(image?.data)) return image as RawImage;
  const { data, width, height, channels } = image;
  const bytes = Buffer.from(data.slice().buffer);
  return { data: IS_LITTLE_ENDIAN ? bytes.swap16() : bytes, width, height, channels, bitDepth: 16 };
}

/**
 * Encodes like `encodePng`, but before it returns, into a buffer of `takeMemory`, which the caller returns to the pool once
 * the file is written.
 */
export function encodeHere(image: RawImage, options: EncodePngOptions = {}): Buffer {
  const { width, height, channels } = rawSides(image);
  const { level, latin, international } = settingsOf(options);
  const native = loadNative();
  let bytes = native.pngBound(width, height, channels, level, image.bitDepth);
  for (const [key, value] of latin) bytes += TEXT_OVERHEAD + key.length + value.length;
  // rounded up: texts differ a little from picture to picture, and the pool needs equal lengths
  const out = new Uint8Array(takeMemory(Math.ceil(bytes / MEMORY_STEP) * MEMORY_STEP));
  const written = native.encodePngHere(out, image.data, width, height, channels, level, latin, image.bitDepth);
  return withInternationalTexts(bufferOf(out.subarray(0, written)), international);
}

/** Encodes an image that a device has filtered, to the same bytes as `encodePng`. */
export async function encodeFiltered({ pixels, rows }: FilteredImage, options: EncodePngOptions = {}): Promise<Buffer> {
  const { width, height, channels } = checkSides(pixels);
  const { level, latin, international } = settingsOf(options);
  const file = await loadNative().deflatePng(rows, width, height, channels, level, latin);
  return withInternationalTexts(bufferOf(file), international);
}

function settingsOf({ level, text = {} }: EncodePngOptions) {
  const texts = checkTexts(text);
  return {
    level: checkLevel(level),
    latin: texts.filter(([, value]) => !isInternational(value)),
    international: texts.filter(([, value]) => isInternational(value)),
  };
}

function checkLevel(level = 4): number {
  if (Number.isInteger(level) && level >= 0 && level <= 9) return level;
  throw valueError("value.out-of-range", "PNG level", "0 to 9", level);
}

/**
 * Reads a PNG file of any colour type and depth; decoded off the event loop. For an animation it reads the picture that
 * viewers of still pictures show; EXIF is not applied. Fails with png.invalid, and with png.too-large, before anything is
 * allocated, for more than 2^27 pixels, a text of more than 2^24 bytes, or 2^26 bytes of texts.
 */
export async function decodePng(bytes: Uint8Array): Promise<DecodedImage> {
  const image = await decoded(bytes, MAX_PIXELS, (native) => native.decodePng(bytes, MAX_PIXELS));
  return { ...image, text: readPngTexts(bytes) };
}

/**
 * Reads the first `limit` frames of a PNG file as a viewer shows them: composited, and turned by the EXIF orientation.
 * The samples lie in a buffer of `takeMemory`. Fails as decodePng, with `maxPixels` for all frames together.
 */
export async function decodePngFrames(
  bytes: Uint8Array,
  limit = MAX_PIXELS,
  maxPixels = MAX_PIXELS,
): Promise<DecodedFrames> {
  return decoded(bytes, maxPixels, async (native) => {
    const { samples, byteLength, ...frames } = await native.decodePngFrames(bytes, maxPixels, limit);
    const data = new Uint8Array(takeMemory(byteLength));
    native.takeSamples(samples, data);
    return framesOf(frames, data);
  });
}

/** Reads frames like `decodePngFrames`, but before it returns. */
export function decodePngFramesHere(bytes: Uint8Array, limit = MAX_PIXELS, maxPixels = MAX_PIXELS): DecodedFrames {
  checkFile(bytes, maxPixels);
  const native = loadNative();
  let data: Uint8Array<ArrayBuffer> | undefined;
  try {
    const { byteLength, ...frames } = native.inspectPngFrames(bytes, maxPixels, limit);
    data = new Uint8Array(takeMemory(byteLength));
    native.decodePngFramesHere(data, bytes, maxPixels, limit);
    return framesOf(frames, data);
  } catch (error) {
    if (data !== undefined) returnMemory(data.buffer);
    throw decodingFailed(error, bytes, maxPixels);
  }
}

const framesOf = (frames: Omit<DecodedFrames, "data">, data: Uint8Array<ArrayBuffer>): DecodedFrames => ({
  ...frames,
  data: frames.bitDepth === 16 ? new Uint16Array(data.buffer) : data,
});

async function decoded<T>(
  bytes: Uint8Array,
  maxPixels: number,
  decode: (native: NativeBindings) => Promise<T>,
): Promise<T> {
  checkFile(bytes, maxPixels);
  try {
    return await decode(loadNative());
  } catch (error) {
    throw decodingFailed(error, bytes, maxPixels);
  }
}

function checkFile(bytes: Uint8Array, maxPixels: number): void {
  if (!(bytes instanceof Uint8Array)) throw valueError("png.invalid", "PNG", "the bytes of a file", bytes);
  if (bytes.length < 24 || !SIGNATURE.equals(bytes.subarray(0, 8))) return;
  const header = bufferOf(bytes);
  checkPixels(header.readUInt32BE(16), header.readUInt32BE(20), maxPixels);
}

function decodingFailed(error: unknown, bytes: Uint8Array, maxPixels: number): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const { status } = error as { status?: string };
  // without the name of the native function
  const reason = reasonOf(error).replace(/^\w+: /, "");
  if (status !== "too-large") return new LatentkitError("png.invalid", `PNG: ${reason}.`, {}, { cause: error });
  if (/pixels/.test(reason)) {
    const expected = `at most ${maxPixels} pixels in all frames of an animation`;
    return new LatentkitError("png.too-large", `PNG: expected ${expected}, received more.`, {}, { cause: error });
  }
  try {
    // names the text that is too long
    readPngTexts(bytes);
  } catch (longer) {
    if (longer instanceof LatentkitError) return longer;
  }
  return new LatentkitError("png.too-large", `PNG: ${reason}.`, {}, { cause: error });
}

/** Converts decoded images to an IMAGE [frames, H, W, 3 or 4] in 0…1; grey becomes RGB. */
export function imageTensor(image: DecodedImage | DecodedFrames): Tensor {
  const { width, height, channels, data } = image;
  const shape = ["frames" in image ? image.frames : 1, height, width, channels];
  const values = data instanceof Uint8Array ? fromBytes(data, shape) : fromDeep(data, shape);
  return channels >= 3 ? values : greyToColour(values);
}

function fromDeep(data: Uint16Array, shape: readonly number[]): Tensor {
  const out = Tensor.unfilled(shape);
  const values = out.data;
  // a callback for each sample takes several times as long
  for (let i = 0; i < data.length; i++) values[i] = data[i]! / 65535;
  return out;
}

function greyToColour(grey: Tensor): Tensor {
  const channels = grey.shape[3]!;
  const out = Tensor.unfilled([...grey.shape.slice(0, 3), channels + 2]);
  for (let from = 0, to = 0; from < grey.size; from += channels) {
    for (let copy = 0; copy < 3; copy++) out.data[to++] = grey.data[from]!;
    if (channels === 2) out.data[to++] = grey.data[from + 1]!;
  }
  return out;
}

type Sides = Omit<RawImage, "data" | "bitDepth">;

function tensorSides({ shape }: Tensor): Sides {
  const [height, width, channels = 1] = shape.length === 4 && shape[0] === 1 ? shape.slice(1) : shape;
  const isImage = shape.length >= 2 && (shape.length <= 3 || (shape.length === 4 && shape[0] === 1));
  if (!isImage || !width || !height || channels < 1 || channels > 4) {
    const expected = "a tensor [H, W], [H, W, C] or [1, H, W, C] with 1 to 4 channels";
    throw badShape("PNG image", expected, { shape });
  }
  return checkSides({ width, height, channels });
}

function rawSides(image: RawImage): Sides {
  const { data, width, height, channels } = image ?? {};
  // a tensor of another copy of the package
  const isForeign = Array.isArray((image as { shape?: unknown } | undefined)?.shape);
  if (!(data instanceof Uint8Array))
    throw valueError("value.invalid", "PNG image", "a Tensor or bytes as data", isForeign ? image : (data ?? image));
  for (const [name, value, max] of [
    ["width", width, MAX_SIDE],
    ["height", height, MAX_SIDE],
    ["channels", channels, 4],
  ] as const) {
    if (!Number.isInteger(value) || value < 1 || value > max)
      throw valueError("value.out-of-range", `PNG ${name}`, `a whole number from 1 to ${max}`, value);
  }
  const { bitDepth = 8 } = image;
  if (bitDepth !== 8 && bitDepth !== 16) throw valueError("value.invalid", "PNG bitDepth", "8 or 16", bitDepth);
  const expected = (width * height * channels * bitDepth) / 8;
  if (data.length !== expected) {
    const sides = `${width} x ${height} x ${channels}`;
    throw valueError("value.invalid", "PNG data", `${expected} bytes for ${sides}`, data.length);
  }
  return checkSides(image);
}

function checkSides(sides: Sides): Sides {
  checkPixels(sides.width, sides.height, MAX_PIXELS);
  return sides;
}

function checkPixels(width: number, height: number, maxPixels: number): void {
  if (width * height <= maxPixels) return;
  const message = `PNG: expected at most ${maxPixels} pixels, received ${width} x ${height}.`;
  throw new LatentkitError("png.too-large", message);
}

/**
 * Hash "blake3:…" of width, height and channels, 32 bits big-endian each, and the samples in rows from the top: equal for
 * equal images in any file, but other for 16 bits than for 8.
 */
export function pixelHash({ width, height, channels, data, bitDepth }: RawImage): string {
  // synchronous: 0.6 ms for a megapixel with AVX-512, 2 without, no more than a turn on a busy thread pool
  return `blake3:${loadNative().pixelHash(data, width, height, channels, bitDepth)}`;
}
