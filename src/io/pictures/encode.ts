import type { Sharp } from "sharp";
import { LatentkitError } from "../../base/errors.js";
import type { RawImage } from "../raw-image.js";
import { replaceAvifExif, withJpegExif, withWebpExif } from "./embed-exif.js";
import { DEFAULT_QUALITY, type PictureFormat, type PictureType } from "./format.js";
import { requireSharp } from "./sharp.js";
import { writeExif } from "./write-exif.js";

/** Types that sharp writes. */
type SharpType = Exclude<PictureType, "png">;

/** Longest side of each type. */
const MAX_SIDES: Readonly<Record<SharpType, number>> = { webp: 16383, jpeg: 65535, avif: 16384 };

/** Quality from which on JPEG files keep the colour of each pixel. */
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
    const [reason = ""] = (error as Error).message.split("\n", 1);
    throw new LatentkitError("file.write-failed", `Cannot encode a ${type} file: ${reason}.`, {}, { cause: error });
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
  avif: replaceAvifExif,
};
