import { pictureKind } from "./kind.js";

/** Begins the EXIF segments of JPEG files. */
export const EXIF_HEADER = Buffer.from("Exif\0\0", "latin1");
const APP1 = 0xe1;
const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;
const RIFF_HEADER_BYTES = 12;

/** EXIF block of a JPEG file; undefined where it has none. One of more than 64 KiB stands in several segments. */
export function jpegExif(file: Uint8Array): Uint8Array | undefined {
  const parts: Buffer[] = [];
  for (const { marker, data } of jpegSegments(file)) {
    if (marker !== APP1 || !data.subarray(0, EXIF_HEADER.length).equals(EXIF_HEADER)) continue;
    const part = data.subarray(EXIF_HEADER.length);
    // another block is not the rest of the first one
    if (parts.length === 0 || pictureKind(part) !== "tiff") parts.push(part);
  }
  return parts.length === 0 ? undefined : Buffer.concat(parts);
}

/** Segments before the pixels of a JPEG file. */
function* jpegSegments(file: Uint8Array): Generator<{ readonly marker: number; readonly data: Buffer }> {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  for (let at = 2; at + 4 <= bytes.length; ) {
    if (bytes[at] !== 0xff) return;
    const marker = bytes[at + 1]!;
    if (marker === 0xff) {
      // a filler
      at++;
      continue;
    }
    const length = bytes.readUInt16BE(at + 2);
    if (marker === START_OF_SCAN || marker === END_OF_IMAGE || length < 2) return;
    yield { marker, data: bytes.subarray(at + 4, at + 2 + length) };
    at += 2 + length;
  }
}

/** EXIF block of a WebP file; undefined where it has none. */
export function webpExif(file: Uint8Array): Uint8Array | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  for (let at = RIFF_HEADER_BYTES; at + 8 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at + 4);
    if (bytes.toString("latin1", at, at + 4) === "EXIF") return withoutHeader(bytes.subarray(at + 8, at + 8 + length));
    at += 8 + length + (length % 2);
  }
  return undefined;
}

/** The block itself: some programs write the header of JPEG segments before it. */
export const withoutHeader = (block: Buffer): Buffer =>
  block.subarray(0, EXIF_HEADER.length).equals(EXIF_HEADER) ? block.subarray(EXIF_HEADER.length) : block;
