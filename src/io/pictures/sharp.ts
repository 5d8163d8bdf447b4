import type { Sharp } from "sharp";
import { LatentkitError, reasonOf } from "../../base/errors.js";
import { loadSharp } from "../../base/lazy.js";
import type { RawImage } from "../png/raw-image.js";
import { writeExif } from "./exif.js";
import { withAvifExif, withJpegExif, withWebpExif } from "./exif-block.js";
import { DEFAULT_QUALITY, KIND_NAMES, type PictureFormat, type PictureKind, type PictureType } from "./format.js";

/** The package sharp. Fails with picture.needs-sharp if it is missing; `purpose` begins the sentence. */
export function requireSharp(purpose: string): ReturnType<typeof loadSharp> {
  try {
    return loadSharp();
  } catch (error) {
    const message = `${purpose} needs the optional package sharp, which could not be loaded: run "npm install sharp".`;
    throw new LatentkitError("picture.needs-sharp", message, {}, { cause: error });
  }
}

/** Part of a file that is read. */
export interface Reading {
  readonly kind: PictureKind;
  /** Number of frames, from the first on. Default: 1. */
  readonly frames?: number;
  /** Limit of their pixels, checked before these are allocated. */
  readonly maxPixels: number;
}

/** Lets sharp read the first frames of a file. Fails with picture.needs-sharp, picture.invalid and picture.too-large. */
export async function openWithSharp<T>(
  bytes: Uint8Array,
  { kind, frames = 1, maxPixels }: Reading,
  read: (image: Sharp) => Promise<T>,
): Promise<T> {
  const name = KIND_NAMES[kind];
  const sharp = requireSharp(`Reading ${name} file`);
  try {
    // "truncated" is the strictest that lets the warnings of sound files pass
    const image = sharp(bytes, { limitInputPixels: maxPixels, failOn: "truncated", pages: frames });
    return await read(image);
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const isLarge = /pixel limit/i.test((error as Error).message);
    const message = isLarge
      ? `Picture: expected at most ${maxPixels} pixels in all frames, received more.`
      : `Picture: the ${name.replace(/^an? /, "")} file is damaged (${reasonOf(error).slice(0, 200)}).`;
    throw new LatentkitError(isLarge ? "picture.too-large" : "picture.invalid", message, {}, { cause: error });
  }
}

/** Version of the decoder of files other than PNG, on which their pixels depend; undefined if sharp is missing. */
export function decoderVersion(): string | undefined {
  try {
    const { versions } = loadSharp();
    return `sharp ${versions.sharp ?? ""} libvips ${versions.vips}`;
  } catch {
    return undefined;
  }
}

/** Types that sharp writes. */
type SharpType = Exclude<PictureType, "png">;

/** Longest side of each type. */
const MAX_SIDES: Readonly<Record<SharpType, number>> = { webp: 16383, jpeg: 65535, avif: 16384 };

/** JPEG files of at least this quality keep the colour of each pixel. */
const FULL_COLOUR = 90;

/**
 * Encodes 8-bit pixels as WebP, JPEG or AVIF, off the event loop, with texts as EXIF. JPEG files have no alpha. Fails with
 * picture.needs-sharp, picture.too-large and file.write-failed.
 */
export async function encodeBySharp(
  image: RawImage,
  type: SharpType,
  format: PictureFormat,
  texts: readonly (readonly [key: string, text: string])[],
): Promise<Buffer> {
  const { data, width, height } = image;
  const side = Math.max(width, height);
  if (side > MAX_SIDES[type]) {
    const message = `Picture: expected sides of at most ${MAX_SIDES[type]} pixels for ${type}, received ${width} x ${height}.`;
    throw new LatentkitError("picture.too-large", message);
  }
  const sharp = requireSharp(`Writing ${type} files`);
  const channels = image.channels as 1 | 2 | 3 | 4;
  const block = texts.length === 0 ? undefined : writeExif(texts);
  const raw = sharp(data, { raw: { width, height, channels } }).toColourspace("srgb");
  // sharp makes the EXIF item of AVIF files, whose content is then replaced
  const marked = block !== undefined && type === "avif" ? raw.withExif({ IFD0: { Software: "latentkit" } }) : raw;
  let file: Buffer;
  try {
    file = await ENCODERS[type](marked, format).toBuffer();
  } catch (error) {
    const message = `Cannot encode a ${type} file: ${reasonOf(error)}.`;
    throw new LatentkitError("file.write-failed", message, {}, { cause: error });
  }
  // a copy: memory of sharp cannot move to another thread
  return block === undefined ? Buffer.from(file) : EMBEDDERS[type](file, block, image);
}

const ENCODERS: Readonly<Record<SharpType, (image: Sharp, format: PictureFormat) => Sharp>> = {
  // exact: colours under full transparency stay too
  webp: (image, { lossless, quality = DEFAULT_QUALITY }) =>
    lossless ? image.webp({ lossless, exact: true }) : image.webp({ quality }),
  jpeg: (image, { quality = DEFAULT_QUALITY }) =>
    image.removeAlpha().jpeg({ quality, chromaSubsampling: quality >= FULL_COLOUR ? "4:4:4" : "4:2:0" }),
  avif: (image, { lossless, quality = DEFAULT_QUALITY }) =>
    lossless ? image.avif({ lossless }) : image.avif({ quality }),
};

const EMBEDDERS: Readonly<Record<SharpType, (file: Buffer, block: Buffer, image: RawImage) => Buffer>> = {
  webp: withWebpExif,
  jpeg: withJpegExif,
  avif: withAvifExif,
};
