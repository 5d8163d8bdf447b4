import { isObject, type Rule } from "../../base/options.js";

export const PICTURE_TYPES = ["png", "webp", "jpeg", "avif"] as const;
export type PictureType = (typeof PICTURE_TYPES)[number];

/** Format of saved pictures. */
export interface PictureFormat {
  /** "png" where absent; the others are written by sharp. */
  readonly type?: PictureType;
  /** Quality of webp, jpeg and avif files, 1 to 100; 90 where absent. */
  readonly quality?: number;
  /** Keeps every pixel of webp and avif files as it is, as png files do. */
  readonly lossless?: boolean;
  /** Bits of a sample of png files, 8 or 16; 8 where absent. */
  readonly bitDepth?: 8 | 16;
}

export const DEFAULT_QUALITY = 90;

const KEYS: ReadonlySet<string> = new Set<keyof PictureFormat>(["type", "quality", "lossless", "bitDepth"]);

/** Rule of an option that is a format. */
export const FORMAT: Rule = [
  "a format of pictures: { type } of png with bitDepth 8 or 16, of webp or avif with quality 1 to 100 or lossless, or of jpeg with quality 1 to 100",
  isFormat,
];

function isFormat(value: unknown): boolean {
  if (!isObject(value) || Object.keys(value).some((key) => !KEYS.has(key))) return false;
  const { type = "png", quality, lossless, bitDepth } = value;
  if (!(PICTURE_TYPES as readonly unknown[]).includes(type)) return false;
  if (bitDepth !== undefined && (type !== "png" || (bitDepth !== 8 && bitDepth !== 16))) return false;
  if (lossless !== undefined && (typeof lossless !== "boolean" || (lossless && type === "jpeg"))) return false;
  if (quality === undefined) return true;
  const isQuality = Number.isInteger(quality) && (quality as number) >= 1 && (quality as number) <= 100;
  return isQuality && type !== "png" && lossless !== true;
}

/** End of the names of files of each type. */
export const EXTENSIONS = { png: ".png", webp: ".webp", jpeg: ".jpg", avif: ".avif" } as const satisfies Record<
  PictureType,
  string
>;
