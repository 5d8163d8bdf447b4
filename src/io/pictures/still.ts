import { type DecodedImage, decodePng } from "../png/png.js";
import { decodePicture } from "./decode.js";
import { type PictureKind, pictureKind } from "./kind.js";
import { pictureTexts } from "./texts.js";

/** A still picture, its texts and its format. */
export interface StillImage extends DecodedImage {
  readonly kind: PictureKind;
  /** Reason why the file's pixels are not those that were saved, as part of a sentence; undefined where they are. */
  readonly loss?: string;
}

/** Reads a picture of any format with its texts; of an animation the first frame. Fails as decodePicture. */
export async function readStill(file: Uint8Array): Promise<StillImage> {
  const kind = file instanceof Uint8Array ? pictureKind(file) : undefined;
  if (kind === undefined || kind === "png") return { ...(await decodePng(file)), kind: "png" };
  const { width, height, channels, bitDepth, data } = await decodePicture(file, 1);
  const text = await pictureTexts(file);
  return { width, height, channels, bitDepth, data, text, kind, loss: lossOf(file, kind) };
}

const SAVE_OTHERWISE = "save PNG files, or WebP or AVIF files with `lossless`";

function lossOf(file: Uint8Array, kind: PictureKind): string | undefined {
  if (kind === "jpeg") return `a JPEG file is lossy; ${SAVE_OTHERWISE}`;
  if (kind === "webp" && !isLossless(file)) {
    return `a WebP file saved without \`lossless\` is lossy; ${SAVE_OTHERWISE}`;
  }
  if (kind !== "avif") return undefined;
  return `this AVIF file is lossy; ${SAVE_OTHERWISE}`;
}

/** Whether a WebP file has a lossless picture: the first chunk after those that describe the file says so. */
function isLossless(file: Uint8Array): boolean {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  for (let at = 12; at + 8 <= bytes.length; ) {
    const type = bytes.toString("latin1", at, at + 4);
    if (type === "VP8L") return true;
    if (type === "VP8 " || type === "ALPH") return false;
    const length = bytes.readUInt32LE(at + 4);
    at += 8 + length + (length % 2);
  }
  return false;
}
