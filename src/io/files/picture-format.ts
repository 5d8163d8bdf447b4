/** Number of bytes at the beginning of a file that identify its format. */
export const HEAD_BYTES = 16;

const FORMATS: readonly (readonly [name: string, at: number, bytes: string])[] = [
  ["a PNG", 0, "\x89PNG\r\n\x1a\n"],
  ["a JPEG", 0, "\xff\xd8\xff"],
  ["a WebP", 8, "WEBP"],
  ["a GIF", 0, "GIF8"],
  ["a BMP", 0, "BM"],
  ["a TIFF", 0, "II*\0"],
  ["a TIFF", 0, "MM\0*"],
  ["an AVIF", 4, "ftypavi"],
  ["a HEIC", 4, "ftyphe"],
  ["a HEIC", 4, "ftypmif1"],
  ["a JPEG XL", 0, "\xff\n"],
  ["a JPEG XL", 4, "JXL \r\n"],
  ["a PSD", 0, "8BPS"],
];

/** Format of a file by its first bytes, as the end of "x.png, which is …"; undefined for a PNG. */
export function notPng(head: Uint8Array): string | undefined {
  if (head.length === 0) return "empty";
  const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, HEAD_BYTES)).toString("latin1");
  const format = FORMATS.find(([, at, bytes]) => text.startsWith(bytes, at))?.[0];
  if (format === "a PNG") return undefined;
  return format === undefined ? "no PNG" : `${format}; latentkit reads PNG`;
}
