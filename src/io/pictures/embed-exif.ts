import { withAvifExif } from "./avif-exif.js";
import { EXIF_HEADER } from "./exif-block.js";

const MAX_SEGMENT_BYTES = 65_533;
const EXIF_FLAG = 0x08;
const ALPHA_FLAG = 0x10;

/** A JPEG file with an EXIF block after its first marker; one of more than 64 KiB in several segments, as ExifTool reads. */
export function withJpegExif(file: Uint8Array, block: Buffer): Buffer {
  const segments: Buffer[] = [];
  const room = MAX_SEGMENT_BYTES - EXIF_HEADER.length;
  for (let at = 0; at < block.length; at += room) {
    const part = block.subarray(at, at + room);
    const head = Buffer.from([0xff, 0xe1, 0, 0]);
    head.writeUInt16BE(2 + EXIF_HEADER.length + part.length, 2);
    segments.push(head, EXIF_HEADER, part);
  }
  return Buffer.concat([file.subarray(0, 2), ...segments, file.subarray(2)]);
}

/** A still WebP file, as libwebp wrote it, with an EXIF chunk at its end. */
export function withWebpExif(file: Uint8Array, block: Buffer, { width, height }: { width: number; height: number }) {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const first = bytes.toString("latin1", 12, 16);
  const chunks = [bytes.subarray(12), chunk("EXIF", block)];
  if (first === "VP8X") {
    const extended = Buffer.from(chunks[0]!);
    extended[8]! |= EXIF_FLAG;
    chunks[0] = extended;
  } else {
    const header = Buffer.alloc(10);
    // a bit of the lossless header says that there is an alpha
    const hasAlpha = first === "VP8L" && (bytes[24]! & 0x10) !== 0;
    header[0] = EXIF_FLAG | (hasAlpha ? ALPHA_FLAG : 0);
    header.writeUIntLE(width - 1, 4, 3);
    header.writeUIntLE(height - 1, 7, 3);
    chunks.unshift(chunk("VP8X", header));
  }
  const body = Buffer.concat([Buffer.from("WEBP", "latin1"), ...chunks]);
  return Buffer.concat([head("RIFF", body.length), body]);
}

/** An AVIF file that has a block already, with this one in its place. */
export function replaceAvifExif(file: Uint8Array, block: Buffer): Buffer {
  const out = withAvifExif(file, block);
  if (out === undefined) throw new Error("an AVIF file without an EXIF item");
  return out;
}

function head(type: string, length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.write(type, "latin1");
  bytes.writeUInt32LE(length, 4);
  return bytes;
}

const chunk = (type: string, data: Buffer): Buffer =>
  Buffer.concat([head(type, data.length), data, Buffer.alloc(data.length % 2)]);
