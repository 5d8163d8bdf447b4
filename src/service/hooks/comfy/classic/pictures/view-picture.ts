import { LatentkitError } from "../../../../../base/errors.js";
import { decodePicture } from "../../../../../io/pictures/decode.js";
import { encodeBySharp } from "../../../../../io/pictures/encode.js";
import { type DecodedFrames, encodePng } from "../../../../../io/png/png.js";
import type { RawImage } from "../../../../../io/raw-image.js";

/** Most pixels of a picture that is converted, or gets a mask. */
export const MOST_PIXELS = 2 ** 24;

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

/** The high bytes of samples, written over them: nobody else has these, and a large picture fills memory once. */
function highBytes(samples: Uint16Array): Uint8Array {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.length);
  // an iterator, or a callback for each sample, takes many times as long
  for (let i = 0; i < samples.length; i++) bytes[i] = samples[i]! >> 8;
  return bytes;
}
