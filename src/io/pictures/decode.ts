import type { Metadata } from "sharp";
import {
  type DecodedFrames,
  type DecodedImage,
  decodePng,
  decodePngFrames,
  decodePngFramesHere,
  MAX_PIXELS,
} from "../png/png.js";
import { readPngTexts } from "../png/text-chunks.js";
import { decodeBmp } from "./bmp.js";
import { type ExifText, exifTexts, USER_COMMENT } from "./exif.js";
import { avifExif, jpegExif, riffChunks, webpExif } from "./exif-block.js";
import { isRead, notPicture, type PictureKind, pictureKind } from "./format.js";
import { openWithSharp, type Reading } from "./sharp.js";

export interface DecodeOptions {
  /** PNG files are decoded in the calling thread. */
  readonly isBlocking?: boolean;
  /** Most pixels of the frames that are read, told by the file's head before anything is decoded. Default: 2^27. */
  readonly maxPixels?: number;
}

/**
 * Reads a picture of any format by its content, as a viewer shows it: turned by its EXIF orientation, its colours in sRGB
 * (PNG files as they are), 8 or 16 bits a sample, the first `limit` frames of an animation or pages of a TIFF. PNG files
 * natively, BMP files here, others by sharp. Fails with picture.invalid, picture.too-large, picture.needs-sharp, and as decodePngFrames.
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
  if (kind === "bmp") return decodeBmp(bytes, maxPixels);
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
  if (kind === undefined) throw notPicture(file);
  if (kind === "png") return { ...(await decodePng(file)), kind: "png" };
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

/**
 * Texts that a picture's file carries, by their keys in ComfyUI's PNG files: `prompt`, `workflow`, `parameters` and any
 * other; PNG, WebP, JPEG, AVIF and TIFF, without sharp. The pixels may be damaged. A damaged text is passed over. Throws
 * picture.invalid for any other file, and png.too-large.
 */
export function pictureTexts(bytes: Uint8Array): Record<string, string> {
  const kind = bytes instanceof Uint8Array ? pictureKind(bytes) : undefined;
  if (kind === undefined) throw notPicture(bytes);
  if (kind === "png") return readPngTexts(bytes);
  const block = EXIF_BLOCKS[kind]?.(bytes);
  return block === undefined ? {} : textsOf(exifTexts(block));
}

const EXIF_BLOCKS: { readonly [Kind in PictureKind]?: (bytes: Uint8Array) => Uint8Array | undefined } = {
  jpeg: jpegExif,
  webp: webpExif,
  tiff: (bytes) => bytes,
  avif: avifExif,
};

/** Keys that programs spell with capitals too. */
const KNOWN_KEYS: ReadonlySet<string> = new Set(["prompt", "workflow", "parameters", "latentkit"]);

/** Tags of plain texts, by the names that PNG gives these. */
const NAMED_TAGS: ReadonlyMap<number, string> = new Map([
  [0x010e, "Description"],
  [0x0131, "Software"],
  [0x013b, "Author"],
  [0x8298, "Copyright"],
]);

function textsOf(entries: readonly ExifText[]): Record<string, string> {
  const texts = new Map<string, string>();
  for (const { tag, text } of entries) {
    const [key, value] = keyed(text) ?? [tag === USER_COMMENT ? commentKey(text) : NAMED_TAGS.get(tag), text];
    if (key !== undefined && value !== "" && !texts.has(key)) texts.set(key, value);
  }
  return Object.fromEntries(texts);
}

/** Parts of "prompt:{…}", as ComfyUI writes JSON into the tags of cameras; undefined for any other text. */
function keyed(text: string): [key: string, value: string] | undefined {
  const parts = /^([\p{L}_][^:"{}[\]\p{Cc}]{0,78}):[ \t]{0,9}(?=[{["\d-]|true|false|null)/u.exec(text);
  if (parts === null) return undefined;
  const key = parts[1]!.trim();
  const lower = key.toLowerCase();
  return [KNOWN_KEYS.has(lower) ? lower : key, text.slice(parts[0].length)];
}

/** Key of a user comment: the line of settings that A1111 writes, or a graph that other programs write instead. */
function commentKey(text: string): string {
  if (!/^\s{0,9}\{/.test(text)) return "parameters";
  if (text.includes('"class_type"')) return "prompt";
  return text.includes('"nodes"') && text.includes('"links"') ? "workflow" : "parameters";
}
