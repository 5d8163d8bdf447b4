import { extname } from "node:path";
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

const FORMAT_KEYS: ReadonlySet<string> = new Set<keyof PictureFormat>(["type", "quality", "lossless", "bitDepth"]);

/** Rule of an option that is a format. */
export const FORMAT: Rule = [
  "a format of pictures: { type } of png with bitDepth 8 or 16, of webp or avif with quality 1 to 100 or lossless, or of jpeg with quality 1 to 100",
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
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, HEAD_BYTES)).toString("latin1");
  const signature = SIGNATURES.find(([, start]) => head.startsWith(start));
  if (signature !== undefined) return signature[0];
  if (head.startsWith("RIFF") && head.startsWith("WEBP", 8)) return "webp";
  if (!head.startsWith("ftyp", 4)) return undefined;
  const end = Math.min(head.length, Buffer.from(head, "latin1").readUInt32BE(0));
  // the brand itself, then, after a version, those that it is compatible with
  const brands: readonly string[] = head.slice(8, end).match(/.{4}/gs) ?? [];
  if (brands.includes("avif") || brands.includes("avis")) return "avif";
  return brands.some((brand) => HEIC_BRANDS.includes(brand)) ? "heic" : undefined;
}

/** Reads `length` bytes of a file from `at` on, fewer where it ends. */
export type ReadPart = (at: number, length: number) => Promise<Buffer>;

/** Number of boxes of an AVIF file that are looked at; there are three or four. */
const MAX_BOXES = 16;
const TAIL_BYTES = 12;

/**
 * Whether a picture that was saved has its end: a power failure may leave less of a file, or zeros in its place. Told by
 * the name's extension; a file of any other is whole.
 */
export async function isWholePicture(name: string, size: number, read: ReadPart): Promise<boolean> {
  return (await WHOLE_CHECKS[extname(name).toLowerCase()]?.(size, read)) ?? true;
}

const WHOLE_CHECKS: Readonly<Record<string, (size: number, read: ReadPart) => Promise<boolean>>> = {
  ".png": async (size, read) => isPngEnd(await read(Math.max(0, size - PNG_END_BYTES), PNG_END_BYTES)),
  ".jpg": async (size, read) => (await read(Math.max(0, size - 2), 2)).equals(Buffer.from([0xff, 0xd9])),
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

async function hasEnd(size: number, read: ReadPart): Promise<boolean> {
  const end = await read(Math.max(0, size - TAIL_BYTES), TAIL_BYTES);
  return end.some((byte) => byte !== 0);
}

/** Last chunk of every PNG file, IEND: no data, and its checksum. */
const PNG_END = Buffer.from([0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82]);

/** @internal */
export const PNG_END_BYTES = PNG_END.length;

/** Whether a PNG file that ends with these bytes was written to its end. @internal */
export const isPngEnd = (bytes: Uint8Array): boolean => PNG_END.equals(bytes.subarray(-PNG_END_BYTES));
