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
