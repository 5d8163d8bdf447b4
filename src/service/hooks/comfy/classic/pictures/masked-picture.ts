import { readFile } from "node:fs/promises";
import { LatentkitError } from "../../../../../base/errors.js";
import { decodePicture } from "../../../../../io/pictures/decode.js";
import { type DecodedFrames, encodePng } from "../../../../../io/png/png.js";
import { MOST_PIXELS } from "./view-picture.js";

/** Paths of a picture, and of one whose alpha it gets. */
export interface MaskWork {
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
  if (alpha.channels !== 2 && alpha.channels !== 4) return "image: expected a picture with alpha, received one without";
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
