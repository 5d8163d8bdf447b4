import { withoutHeader } from "./exif-block.js";

/** Part of a file, or what an item consists of. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** A box of an ISO media file: its type and the place of its content. */
interface Box extends Span {
  readonly type: string;
}

/** A file's EXIF item: its parts, and where the entry of the first one has offset and length. */
interface ExifItem {
  readonly parts: readonly Span[];
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

/** EXIF block of an AVIF file (ISO/IEC 23008-12, annex A); undefined where it has none. */
export function avifExif(file: Uint8Array): Uint8Array | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const parts = exifItem(bytes)?.parts ?? [];
  const total = parts.reduce((sum, { start, end }) => sum + end - start, 0);
  if (total > bytes.length) return undefined;
  const item = Buffer.concat(parts.map(({ start, end }) => bytes.subarray(start, end)));
  // the item begins with the distance to the block
  return item.length < 4 ? undefined : withoutHeader(item.subarray(4 + item.readUInt32BE(0)));
}

/** The file with another block in place of its EXIF item's; undefined where it has no such item. */
export function withAvifExif(file: Uint8Array, block: Uint8Array): Buffer | undefined {
  const item = exifItem(Buffer.from(file.buffer, file.byteOffset, file.byteLength));
  if (item === undefined || !item.isReplaceable) return undefined;
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
function boxes(bytes: Buffer, { start, end }: Span): Box[] {
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
  private at: number;

  constructor(
    private readonly bytes: Buffer,
    private readonly box: Box,
    private readonly data: Box | undefined,
  ) {
    this.at = box.start;
  }

  find(id: number): ExifItem | undefined {
    const version = this.take(1);
    this.take(3);
    const sizes = this.take(2);
    const [offsetBytes, lengthBytes, baseBytes] = [sizes >> 12, (sizes >> 8) & 15, (sizes >> 4) & 15];
    const indexBytes = version === 0 ? 0 : sizes & 15;
    const wide = version === 2 ? 4 : 2;
    const count = Math.min(this.take(wide), MAX_ITEMS);
    for (let item = 0; item < count && this.at < this.box.end; item++) {
      const own = this.take(wide);
      const method = version === 0 ? 0 : this.take(2) & 15;
      this.take(2);
      const base = this.take(baseBytes);
      // relative to the box of item data, or to the file
      const origin = base + (method === 1 ? (this.data?.start ?? this.bytes.length) : 0);
      const extents = Math.min(this.take(2), MAX_ITEMS);
      const offsetAt = this.at + indexBytes;
      const parts: Span[] = [];
      for (let extent = 0; extent < extents && this.at < this.box.end; extent++) {
        this.take(indexBytes);
        const start = origin + this.take(offsetBytes);
        parts.push({ start, end: start + this.take(lengthBytes) });
      }
      if (own !== id) continue;
      if (method > 1 || this.at > this.box.end) return undefined;
      const areNumbers = offsetBytes === NUMBER_BYTES && lengthBytes === NUMBER_BYTES;
      const isReplaceable = areNumbers && parts.length === 1 && method === 0;
      return { parts, offsetAt, lengthAt: offsetAt + offsetBytes, isReplaceable, base };
    }
    return undefined;
  }

  /** A whole number of up to 8 bytes; 0 where they are none or lie beyond the box. */
  private take(count: number): number {
    const at = this.at;
    this.at += count;
    if (count === 0 || count > 8 || this.at > this.box.end) return 0;
    return count <= 4
      ? this.bytes.readUIntBE(at, count)
      : this.bytes.readUIntBE(at, count - 4) * 2 ** 32 + this.bytes.readUInt32BE(at + count - 4);
  }
}
