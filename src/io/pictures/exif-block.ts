import { bufferOf } from "../../base/bytes.js";
import { pictureKind } from "./format.js";

/** Begins the EXIF segments of JPEG files. */
const EXIF_HEADER = Buffer.from("Exif\0\0", "latin1");
const APP1 = 0xe1;
const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;
const RIFF_HEADER_BYTES = 12;

/** EXIF block of a JPEG file; undefined if it has none. A block of more than 64 KiB stands in several segments. */
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
  const bytes = bufferOf(file);
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

/** Chunks of a WebP file. */
export function* riffChunks(file: Uint8Array): Generator<{ readonly type: string; readonly data: Buffer }> {
  const bytes = bufferOf(file);
  for (let at = RIFF_HEADER_BYTES; at + 8 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at + 4);
    yield { type: bytes.toString("latin1", at, at + 4), data: bytes.subarray(at + 8, at + 8 + length) };
    at += 8 + length + (length % 2);
  }
}

/** EXIF block of a WebP file; undefined if it has none. */
export function webpExif(file: Uint8Array): Uint8Array | undefined {
  for (const { type, data } of riffChunks(file)) if (type === "EXIF") return withoutHeader(data);
  return undefined;
}

/** The block itself: some programs write the header of JPEG segments before it. */
const withoutHeader = (block: Buffer): Buffer =>
  block.subarray(0, EXIF_HEADER.length).equals(EXIF_HEADER) ? block.subarray(EXIF_HEADER.length) : block;

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
  const bytes = bufferOf(file);
  const first = bytes.toString("latin1", 12, 16);
  const chunks = [bytes.subarray(12), riffChunk("EXIF", block)];
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
    chunks.unshift(riffChunk("VP8X", header));
  }
  const body = Buffer.concat([Buffer.from("WEBP", "latin1"), ...chunks]);
  return Buffer.concat([riffHead("RIFF", body.length), body]);
}

function riffHead(type: string, length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.write(type, "latin1");
  bytes.writeUInt32LE(length, 4);
  return bytes;
}

const riffChunk = (type: string, data: Buffer): Buffer =>
  Buffer.concat([riffHead(type, data.length), data, Buffer.alloc(data.length % 2)]);

/** Part of a file. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** A box of an ISO media file: its type and the place of its content. */
interface Box extends ByteRange {
  readonly type: string;
}

/** A file's EXIF item: its parts, and where the entry of the first one has offset and length. */
interface ExifItem {
  readonly parts: readonly ByteRange[];
  readonly offsetAt: number;
  readonly lengthAt: number;
  /** Both numbers have 32 bits, and it is one part of the file itself. */
  readonly isReplaceable: boolean;
  /** Added to the offset. */
  readonly base: number;
}

const MAX_BOXES = 1000;
const MAX_ITEMS = 1000;
const NUMBER_BYTES = 4;

/** EXIF block of an AVIF file (ISO/IEC 23008-12, annex A); undefined if it has none. */
export function avifExif(file: Uint8Array): Uint8Array | undefined {
  const bytes = bufferOf(file);
  const parts = exifItem(bytes)?.parts ?? [];
  const total = parts.reduce((sum, { start, end }) => sum + end - start, 0);
  if (total > bytes.length) return undefined;
  const item = Buffer.concat(parts.map(({ start, end }) => bytes.subarray(start, end)));
  // the item begins with the distance to the block
  return item.length < 4 ? undefined : withoutHeader(item.subarray(4 + item.readUInt32BE(0)));
}

/** An AVIF file as sharp wrote it, with this block in place of its EXIF item's. */
export function withAvifExif(file: Uint8Array, block: Buffer): Buffer {
  const item = exifItem(bufferOf(file));
  if (!item?.isReplaceable) throw new Error("an AVIF file without an EXIF item");
  const HEAD = 8;
  const box = Buffer.alloc(HEAD + 4);
  box.writeUInt32BE(box.length + block.length);
  box.write("mdat", 4, "latin1");
  const out = Buffer.concat([file, box, block]);
  out.writeUInt32BE(file.length + HEAD - item.base, item.offsetAt);
  out.writeUInt32BE(4 + block.length, item.lengthAt);
  return out;
}

/** Boxes in a part of a file. */
function boxes(bytes: Buffer, { start, end }: ByteRange): Box[] {
  const found: Box[] = [];
  for (let at = start; at + 8 <= end && found.length < MAX_BOXES; ) {
    const short = bytes.readUInt32BE(at);
    const isLong = short === 1 && at + 16 <= end;
    const size = isLong ? Number(bytes.readBigUInt64BE(at + 8)) : short === 0 ? end - at : short;
    const head = isLong ? 16 : 8;
    if (size < head || at + size > end) break;
    found.push({ type: bytes.toString("latin1", at + 4, at + 8), start: at + head, end: at + size });
    at += size;
  }
  return found;
}

function exifItem(bytes: Buffer): ExifItem | undefined {
  const meta = boxes(bytes, { start: 0, end: bytes.length }).find(({ type }) => type === "meta");
  // version and flags come first
  const inside = meta === undefined ? [] : boxes(bytes, { start: meta.start + 4, end: meta.end });
  const named = (name: string) => inside.find(({ type }) => type === name);
  const infos = named("iinf");
  const places = named("iloc");
  if (infos === undefined || places === undefined) return undefined;
  const id = exifId(bytes, infos);
  return id === undefined ? undefined : new Places(bytes, places, named("idat")).find(id);
}

/** Id of the item of type "Exif". */
function exifId(bytes: Buffer, { start, end }: Box): number | undefined {
  if (end - start < 6) return undefined;
  const first = start + (bytes[start] === 0 ? 6 : 8);
  for (const { type, start: at, end: last } of boxes(bytes, { start: first, end })) {
    if (type !== "infe" || last - at < 12 || bytes[at]! < 2) continue;
    const idBytes = bytes[at] === 2 ? 2 : 4;
    const typeAt = at + 4 + idBytes + 2;
    if (typeAt + 4 > last) continue;
    if (bytes.toString("latin1", typeAt, typeAt + 4) === "Exif") return bytes.readUIntBE(at + 4, idBytes);
  }
  return undefined;
}

/** Reads the places of a file's items, in fields of several sizes. */
class Places {
  #at: number;
  readonly #bytes: Buffer;
  readonly #box: Box;
  readonly #data: Box | undefined;

  constructor(bytes: Buffer, box: Box, data: Box | undefined) {
    this.#bytes = bytes;
    this.#box = box;
    this.#data = data;
    this.#at = box.start;
  }

  find(id: number): ExifItem | undefined {
    const version = this.#take(1);
    this.#take(3);
    const sizes = this.#take(2);
    const [offsetBytes, lengthBytes, baseBytes] = [sizes >> 12, (sizes >> 8) & 15, (sizes >> 4) & 15];
    const indexBytes = version === 0 ? 0 : sizes & 15;
    const wide = version === 2 ? 4 : 2;
    const count = Math.min(this.#take(wide), MAX_ITEMS);
    for (let item = 0; item < count && this.#at < this.#box.end; item++) {
      const own = this.#take(wide);
      const method = version === 0 ? 0 : this.#take(2) & 15;
      this.#take(2);
      const base = this.#take(baseBytes);
      // relative to the box of item data, or to the file
      const origin = base + (method === 1 ? (this.#data?.start ?? this.#bytes.length) : 0);
      const extents = Math.min(this.#take(2), MAX_ITEMS);
      const offsetAt = this.#at + indexBytes;
      const parts: ByteRange[] = [];
      for (let extent = 0; extent < extents && this.#at < this.#box.end; extent++) {
        this.#take(indexBytes);
        const start = origin + this.#take(offsetBytes);
        parts.push({ start, end: start + this.#take(lengthBytes) });
      }
      if (own !== id) continue;
      if (method > 1 || this.#at > this.#box.end) return undefined;
      const areNumbers = offsetBytes === NUMBER_BYTES && lengthBytes === NUMBER_BYTES;
      const isReplaceable = areNumbers && parts.length === 1 && method === 0;
      return { parts, offsetAt, lengthAt: offsetAt + offsetBytes, isReplaceable, base };
    }
    return undefined;
  }

  /** A whole number of up to 8 bytes; 0 if there are none or they lie beyond the box. */
  #take(count: number): number {
    const at = this.#at;
    this.#at += count;
    if (count === 0 || count > 8 || this.#at > this.#box.end) return 0;
    return count <= 4
      ? this.#bytes.readUIntBE(at, count)
      : this.#bytes.readUIntBE(at, count - 4) * 2 ** 32 + this.#bytes.readUInt32BE(at + count - 4);
  }
}
