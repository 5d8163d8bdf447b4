import { returnMemory } from "../../tensor/memory.js";
import { itemToBytes, itemToUint16 } from "../../tensor/ops.js";
import { Tensor } from "../../tensor/tensor.js";
import { encodeBySharp } from "../pictures/encode.js";
import type { PictureFormat } from "../pictures/format.js";
import { filterOnDevice } from "../png/filtered-image.js";
import { encodeFiltered, encodeHere, encodePng } from "../png/png.js";
import type { RawImage } from "../raw-image.js";

type Texts = readonly (readonly [key: string, text: string])[];

/** How an image becomes a file. */
export interface ItemEncoding {
  /** A PNG file of 8 bits where absent. */
  readonly format?: PictureFormat;
  readonly text?: Texts;
  /** Makes a further text of the very samples that are encoded. */
  readonly textOf?: (pixels: RawImage) => Promise<readonly [key: string, text: string] | undefined>;
  /** Encodes PNG files in the calling thread; see `OutputHandling`. */
  readonly isBlocking?: boolean;
}

const LEVEL = 4;

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
  const settings = { level: LEVEL, text: texts, bitDepth };
  try {
    if (filtered !== undefined) return await encodeFiltered(filtered, settings);
    if (pixels instanceof Tensor) return await encodePng(pixels, settings);
    if (!isPng) return await encodeBySharp(pixels, type, format, texts);
    return isBlocking ? encodeHere(pixels, settings) : await encodePng(pixels, settings);
  } finally {
    if (!(pixels instanceof Tensor)) returnMemory(pixels.data.buffer);
  }
}

/** One of the images, as bytes where these are needed. */
function pictureOf(images: Tensor, index: number, bitDepth: 8 | 16, asBytes: boolean): Tensor | RawImage {
  // a deferred image is cheaper to compute as bytes
  if (!asBytes && images.deferred === undefined) return viewOf(images, index);
  const [, height, width, channels] = images.shape as [number, number, number, number];
  const data = bitDepth === 16 ? itemToUint16(images, index) : itemToBytes(images, index);
  return { data, width, height, channels, bitDepth };
}

/** Image `index` of a batch as a view [H, W, C]. */
export function viewOf({ data, shape }: Tensor, index: number): Tensor {
  const [, height, width, channels] = shape as [number, number, number, number];
  const size = height * width * channels;
  return Tensor.from(data.subarray(index * size, (index + 1) * size), [height, width, channels]);
}
