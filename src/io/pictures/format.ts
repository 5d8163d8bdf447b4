import { extname } from "node:path";
import { bufferOf } from "../../base/bytes.js";
import { describe, LatentkitError } from "../../base/errors.js";
import { isObject, type Rule } from "../../base/options.js";

export const PICTURE_TYPES = ["png", "webp", "jpeg", "avif"] as const;
export type PictureType = (typeof PICTURE_TYPES)[number];

/** Format of saved pictures. */
export interface PictureFormat {
  /** Default: "png"; the others are written by sharp. */
  readonly type?: PictureType;
  /** Quality of webp, jpeg and avif files, 1 to 100. Default: 90. */
  readonly quality?: number;
  /** Keeps every pixel of webp and avif files as it is, as png files do. */
  readonly lossless?: boolean;
  /** Bits of a sample of png files, 8 or 16. Default: 8. */
  readonly bitDepth?: 8 | 16;
}

export const DEFAULT_QUALITY = 90;

const FORMAT_KEYS: ReadonlySet<string> = new Set<keyof PictureFormat>(["type", "quality", "lossless", "bitDepth"]);

/** Rule of an option that is a format. */
export const FORMAT: Rule = [
  'a picture format: { type: "png", bitDepth: 8 or 16 }, { type: "webp" or "avif", quality: 1 to 100, or lossless }, or { type: "jpeg", quality: 1 to 100 }',
  isFormat,
];

function isFormat(value: unknown): boolean {
  if (!isObject(value) || Object.keys(value).some((key) => !FORMAT_KEYS.has(key))) return false;
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

/** Formats of pictures that a file's content tells apart. */
export type PictureKind = "png" | "jpeg" | "webp" | "avif" | "gif" | "tiff" | "bmp" | "heic" | "jxl" | "psd";

/** Number of bytes at the beginning of a file that identify its format. */
export const HEAD_BYTES = 64;

/** Names in messages, with their article. */
export const KIND_NAMES: Readonly<Record<PictureKind, string>> = {
  png: "a PNG",
  jpeg: "a JPEG",
  webp: "a WebP",
  avif: "an AVIF",
  gif: "a GIF",
  tiff: "a TIFF",
  bmp: "a BMP",
  heic: "a HEIC",
  jxl: "a JPEG XL",
  psd: "a PSD",
};

const SIGNATURES: readonly (readonly [kind: PictureKind, signature: string])[] = [
  ["png", "\x89PNG\r\n\x1a\n"],
  ["jpeg", "\xff\xd8\xff"],
  ["gif", "GIF87a"],
  ["gif", "GIF89a"],
  ["tiff", "II*\0"],
  ["tiff", "MM\0*"],
  ["tiff", "II+\0"],
  ["tiff", "MM\0+"],
  ["jxl", "\xff\n"],
  ["jxl", "\0\0\0\x0cJXL \r\n"],
  ["psd", "8BPS"],
  ["bmp", "BM"],
];

const HEIC_BRANDS = ["heic", "heix", "hevc", "mif1", "msf1"];

/** Format of a file by its first bytes, never by its name; undefined for any other. */
export function pictureKind(bytes: Uint8Array): PictureKind | undefined {
  const head = bufferOf(bytes).toString("latin1", 0, HEAD_BYTES);
  const signature = SIGNATURES.find(([, start]) => head.startsWith(start));
  if (signature !== undefined) return signature[0];
  if (head.startsWith("RIFF") && head.startsWith("WEBP", 8)) return "webp";
  if (!head.startsWith("ftyp", 4)) return undefined;
  const end = Math.min(head.length, Buffer.from(head, "latin1").readUInt32BE(0));
  // the brand itself, a version, and the compatible brands
  const brands: readonly string[] = head.slice(8, end).match(/.{4}/gs) ?? [];
  if (brands.includes("avif") || brands.includes("avis")) return "avif";
  return brands.some((brand) => HEIC_BRANDS.includes(brand)) ? "heic" : undefined;
}

/** Formats that are read. */
const READ: ReadonlySet<PictureKind> = new Set(["png", "jpeg", "webp", "avif", "gif", "tiff", "bmp"]);

/** Formats that are read, in words. */
export const READ_NAMES = "PNG, JPEG, WebP, AVIF, GIF, TIFF or BMP";

export const isRead = (kind: PictureKind | undefined): kind is PictureKind => kind !== undefined && READ.has(kind);

/** Whether sharp reads a format; PNG and BMP are built in. */
export const needsSharp = (kind: PictureKind): boolean => kind !== "png" && kind !== "bmp";

/** Error of bytes, or another value, that are not a picture of a format that is read. */
export function notPicture(bytes: unknown): LatentkitError {
  const received = bytes instanceof Uint8Array ? "another file" : describe(bytes);
  const message = `Picture: expected the bytes of a ${READ_NAMES} file, received ${received}.`;
  return new LatentkitError("picture.invalid", message, { received });
}

/** Reads `length` bytes of a file from `at` on, fewer if it ends before. */
export type ReadPart = (at: number, length: number) => Promise<Buffer>;

/** Number of boxes of an AVIF file that are looked at; there are three or four. */
const MAX_BOXES = 16;
const TAIL_BYTES = 12;
/** Last chunk of every PNG file, IEND: no data, and its checksum. */
const PNG_END = Buffer.from([0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82]);
const JPEG_END = Buffer.from([0xff, 0xd9]);

/**
 * Whether a saved picture has its end: a power failure may leave less of a file, or zeros in its place. The name's
 * extension tells the format; a file of any other format counts as whole.
 */
export async function isWholePicture(name: string, size: number, read: ReadPart): Promise<boolean> {
  return (await WHOLE_CHECKS[extname(name).toLowerCase()]?.(size, read)) ?? true;
}

const WHOLE_CHECKS: Readonly<Record<string, (size: number, read: ReadPart) => Promise<boolean>>> = {
  ".png": (size, read) => endsIn(PNG_END, size, read),
  ".jpg": (size, read) => endsIn(JPEG_END, size, read),
  ".webp": async (size, read) => {
    const head = await read(0, 8);
    return head.length === 8 && head.readUInt32LE(4) + 8 === size && hasEnd(size, read);
  },
  ".avif": async (size, read) => {
    let at = 0;
    for (let box = 0; box < MAX_BOXES && at < size; box++) {
      const head = await read(at, 4);
      if (head.length < 4 || head.readUInt32BE(0) < 8) return false;
      at += head.readUInt32BE(0);
    }
    return at === size && size > 0 && hasEnd(size, read);
  },
};

const endsIn = async (end: Buffer, size: number, read: ReadPart): Promise<boolean> =>
  (await read(Math.max(0, size - end.length), end.length)).equals(end);

async function hasEnd(size: number, read: ReadPart): Promise<boolean> {
  const end = await read(Math.max(0, size - TAIL_BYTES), TAIL_BYTES);
  return end.some((byte) => byte !== 0);
}
