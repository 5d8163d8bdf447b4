import { readFile } from "node:fs/promises";
import { LatentkitError } from "../../../../../base/errors.js";
import { decodePicture } from "../../../../../io/pictures/decode.js";
import { encodeBySharp } from "../../../../../io/pictures/sharp.js";
import { type DecodedFrames, encodePng } from "../../../../../io/png/png.js";
import type { RawImage } from "../../../../../io/png/raw-image.js";
import type { Clock } from "../../../clock.js";
import { WorkThreads } from "../../../work-threads.js";

export type PictureWork = ViewWork | MaskWork;

/** A file, or why there is none: undefined where that needs no sentence. */
export type PictureDone = { readonly bytes: Uint8Array<ArrayBuffer> } | { readonly refusal: string | undefined };

export type Pictures = WorkThreads<PictureWork, PictureDone>;

/** Work on pictures, one after the other: each is in memory as a whole. */
export const createPictures = (clock: Clock): Pictures =>
  new WorkThreads({
    program: new URL("./picture-thread.js", import.meta.url),
    mostThreads: 1,
    mostWaiting: 256,
    mostMs: 60_000,
    refusal: "converting the picture took too long or needed too much memory",
    clock,
  });

/** Most pixels of a picture that is converted, or gets a mask. */
const MOST_PIXELS = 2 ** 24;

export const CHANNELS = ["rgba", "rgb", "a"] as const;

/** A picture's file and how it is to be shown: some of its channels, and lossy where `preview` says so. */
export interface ViewWork {
  readonly task: "view";
  readonly file: Uint8Array;
  readonly channels: (typeof CHANNELS)[number];
  readonly preview?: { readonly type: "webp" | "jpeg"; readonly quality: number };
}

/** The file to show; undefined where the picture is too large, or nothing here reads or writes it. */
export async function viewPicture({ file, channels, preview }: ViewWork): Promise<Buffer | undefined> {
  try {
    const image = pick(await decodePicture(file, 1, { isBlocking: true, maxPixels: MOST_PIXELS }), channels);
    return preview === undefined ? await encodePng(image) : await encodeBySharp(image, preview.type, preview, []);
  } catch (error) {
    // a damaged file, or one that needs a package that is not installed
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

/** All samples, colours alone, or alpha alone on black, of 8 bits. */
function pick(
  { data, width, height, channels: count, bitDepth }: Omit<DecodedFrames, "frames" | "isKeyed">,
  channels: ViewWork["channels"],
): RawImage {
  const hasAlpha = count === 2 || count === 4;
  const shift = bitDepth - 8;
  if (channels === "rgba" || (channels === "rgb" && !hasAlpha)) {
    return { data: data instanceof Uint8Array ? data : highBytes(data), width, height, channels: count };
  }
  const pixels = width * height;
  const wanted = channels === "rgb" ? count - 1 : 4;
  const picked = new Uint8Array(pixels * wanted);
  for (let pixel = 0; pixel < pixels; pixel++) {
    const from = pixel * count;
    const to = pixel * wanted;
    if (channels === "rgb") for (let c = 0; c < wanted; c++) picked[to + c] = data[from + c]! >> shift;
    else picked[to + 3] = hasAlpha ? data[from + count - 1]! >> shift : 255;
  }
  return { data: picked, width, height, channels: wanted };
}

/** The high bytes of samples, written over them: they are not used elsewhere, and a large picture fills memory once. */
function highBytes(samples: Uint16Array): Uint8Array {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.length);
  // an iterator, or a callback for each sample, takes many times as long
  for (let i = 0; i < samples.length; i++) bytes[i] = samples[i]! >> 8;
  return bytes;
}

/** Paths of a picture, and of one whose alpha it gets. */
interface MaskWork {
  readonly task: "mask";
  readonly original: string;
  readonly mask: string;
}

/** The PNG file of a picture with the alpha of another one, or the sentence that refuses them. */
export async function maskedPicture({ original, mask }: MaskWork): Promise<Buffer | string> {
  const colours = await decoded(original, "original_ref");
  if (typeof colours === "string") return colours;
  const alpha = await decoded(mask, "image");
  if (typeof alpha === "string") return alpha;
  const { width, height } = colours;
  if (alpha.width !== width || alpha.height !== height) {
    return `image: expected a mask of ${width} x ${height} pixels, received ${alpha.width} x ${alpha.height}`;
  }
  if (alpha.channels !== 2 && alpha.channels !== 4) return "image: the mask needs an alpha channel";
  return encodePng(withAlphaOf(colours, alpha));
}

async function decoded(path: string, field: string): Promise<DecodedFrames | string> {
  try {
    return await decodePicture(await readFile(path), 1, { isBlocking: true, maxPixels: MOST_PIXELS });
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    const isTooLarge = error.code === "png.too-large" || error.code === "picture.too-large";
    return `${field}: ${isTooLarge ? "expected a picture of at most 16 megapixels" : error.message}`;
  }
}

/** The colours of one picture and the alpha of another one of the same size, 8 bits. */
function withAlphaOf(original: DecodedFrames, mask: DecodedFrames) {
  const { width, height } = original;
  const data = new Uint8Array(width * height * 4);
  const [red, green, blue] = original.channels >= 3 ? [0, 1, 2] : [0, 0, 0];
  const [shift, maskShift] = [original.bitDepth - 8, mask.bitDepth - 8];
  for (let pixel = 0; pixel < width * height; pixel++) {
    const from = pixel * original.channels;
    data[pixel * 4] = original.data[from + red]! >> shift;
    data[pixel * 4 + 1] = original.data[from + green]! >> shift;
    data[pixel * 4 + 2] = original.data[from + blue]! >> shift;
    data[pixel * 4 + 3] = mask.data[(pixel + 1) * mask.channels - 1]! >> maskShift;
  }
  return { data, width, height, channels: 4 };
}
