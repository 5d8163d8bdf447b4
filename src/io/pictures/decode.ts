import type { Metadata } from "sharp";
import {
  type DecodedFrames,
  type DecodedImage,
  decodePng,
  decodePngFrames,
  decodePngFramesHere,
  MAX_PIXELS,
} from "../png/png.js";
import { riffChunks } from "./exif-block.js";
import { isRead, notPicture, type PictureKind, pictureKind } from "./format.js";
import { openWithSharp, type Reading } from "./sharp.js";
import { pictureTexts } from "./texts.js";

export interface DecodeOptions {
  /** PNG files are decoded in the calling thread. */
  readonly isBlocking?: boolean;
  /** Most pixels of the frames that are read, told by the file's head before anything is decoded. Default: 2^27. */
  readonly maxPixels?: number;
}

/**
 * Reads a picture of any format by its content, as a viewer shows it: turned by its EXIF orientation, its colours in sRGB
 * (PNG files as they are), 8 or 16 bits a sample, the first `limit` frames of an animation or pages of a TIFF. PNG files
 * natively, others by sharp. Fails with picture.invalid, picture.too-large, picture.needs-sharp, and as decodePngFrames.
 */
export async function decodePicture(
  bytes: Uint8Array,
  limit?: number,
  { isBlocking = false, maxPixels = MAX_PIXELS }: DecodeOptions = {},
): Promise<DecodedFrames> {
  const kind = bytes instanceof Uint8Array ? pictureKind(bytes) : undefined;
  if (!isRead(kind)) throw notPicture(bytes);
  // Colour profiles of PNG files are not applied, as in ComfyUI, so pixels do not depend on sharp being installed.
  if (kind === "png") {
    return isBlocking ? decodePngFramesHere(bytes, limit, maxPixels) : decodePngFrames(bytes, limit, maxPixels);
  }
  const metadata = await openWithSharp(bytes, { kind, maxPixels }, (image) => image.metadata());
  const { pages = 1 } = metadata;
  const frames = Math.min(limit ?? pages, pages);
  try {
    return await decoded(bytes, { kind, frames, maxPixels }, metadata);
  } catch (error) {
    // pages of several sizes are not a batch
    if (frames > 1 && kind === "tiff" && /page/i.test((error as Error).message))
      return decoded(bytes, { kind, frames: 1, maxPixels }, metadata);
    throw error;
  }
}

async function decoded(
  bytes: Uint8Array,
  reading: Required<Reading>,
  { depth, space, bitsPerSample }: Metadata,
): Promise<DecodedFrames> {
  const { kind, frames } = reading;
  const isDeep = depth !== "uchar";
  const { data, info } = await openWithSharp(bytes, reading, (image) => {
    const turned = image.autoOrient();
    const converted = isDeep
      ? turned.toColourspace(space === "grey16" ? "grey16" : "rgb16").raw({ depth: "ushort" })
      : turned.raw();
    return converted.timeout({ seconds: MOST_SECONDS }).toBuffer({ resolveWithObject: true });
  });
  const { width, channels } = info;
  const size = { width, height: info.height / frames, channels, frames, isKeyed: false };
  if (!isDeep) return { ...size, bitDepth: 8, data };
  const samples = new Uint16Array(aligned(data), data.byteOffset % 2 === 0 ? data.byteOffset : 0, data.byteLength / 2);
  // libvips leaves the low bits of an AVIF's 10 or 12 empty: white would be grey
  if (kind === "avif" && bitsPerSample !== undefined && bitsPerSample < 16) {
    for (let i = 0; i < samples.length; i++) samples[i] = samples[i]! | (samples[i]! >>> bitsPerSample);
  }
  return { ...size, bitDepth: 16, data: samples };
}

/** Time in which sharp can read the largest picture. */
const MOST_SECONDS = 120;

const aligned = ({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer =>
  (byteOffset % 2 === 0 ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)) as ArrayBuffer;

/** A still picture, its texts and its format. */
export interface StillImage extends DecodedImage {
  readonly kind: PictureKind;
  /** Why the file's pixels are not those that were saved, as a part of a sentence; undefined if they are. */
  readonly loss?: string;
}

/** Reads a picture of any format with its texts; of an animation the first frame. Fails as decodePicture. */
export async function readStill(file: Uint8Array): Promise<StillImage> {
  const kind = file instanceof Uint8Array ? pictureKind(file) : undefined;
  if (kind === undefined || kind === "png") return { ...(await decodePng(file)), kind: "png" };
  const { width, height, channels, bitDepth, data } = await decodePicture(file, 1);
  const text = await pictureTexts(file);
  return { width, height, channels, bitDepth, data, text, kind, loss: lossReason(file, kind) };
}

const SAVE_OTHERWISE = "save PNG files, or WebP or AVIF files with `lossless`";

function lossReason(file: Uint8Array, kind: PictureKind): string | undefined {
  if (kind === "jpeg") return `a JPEG file is lossy; ${SAVE_OTHERWISE}`;
  if (kind === "webp" && !isLossless(file)) return `a WebP file saved without \`lossless\` is lossy; ${SAVE_OTHERWISE}`;
  return kind === "avif" ? `this AVIF file is lossy; ${SAVE_OTHERWISE}` : undefined;
}

/** Whether a WebP file has a lossless picture: the first chunk after those that describe the file says so. */
function isLossless(file: Uint8Array): boolean {
  for (const { type } of riffChunks(file)) {
    if (type === "VP8L") return true;
    if (type === "VP8 " || type === "ALPH") return false;
  }
  return false;
}
