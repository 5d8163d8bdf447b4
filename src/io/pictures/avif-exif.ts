import { withoutHeader } from "./exif-block.js";

/** The place of an AVIF file's EXIF item: where its entry has offset and length, and what these are. */
interface ExifItem {
  /** Index of the offset in the file, and its bytes: 0, 4 or 8. */
  readonly offsetAt: number;
  readonly offsetBytes: number;
  readonly lengthAt: number;
  readonly lengthBytes: number;
  /** Added to the offset. */
  readonly base: number;
  readonly start: number;
  readonly end: number;
}

const MAX_BOXES = 1000;
const MAX_ITEMS = 1000;

/** EXIF block of an AVIF file; undefined where it has none. */
export function avifExif(file: Uint8Array): Uint8Array | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const item = exifItem(bytes);
  if (item === undefined || item.start + 4 > item.end || item.end > bytes.length) return undefined;
  // the item begins with the distance from there to the block
  const start = item.start + 4 + bytes.readUInt32BE(item.start);
  return start < item.end ? withoutHeader(bytes.subarray(start, item.end)) : undefined;
}

/** The file with another block in place of its EXIF item's; undefined where it has no such item. */
export function withAvifExif(file: Uint8Array, block: Uint8Array): Buffer | undefined {
  const item = exifItem(Buffer.from(file.buffer, file.byteOffset, file.byteLength));
  if (item === undefined || item.offsetBytes !== 4 || item.lengthBytes !== 4) return undefined;
  const HEAD = 8;
  const box = Buffer.alloc(HEAD + 4);
  box.writeUInt32BE(box.length + block.length);
  box.write("mdat", 4, "latin1");
  const out = Buffer.concat([file, box, block]);
  out.writeUInt32BE(file.length + HEAD - item.base, item.offsetAt);
  out.writeUInt32BE(4 + block.length, item.lengthAt);
  return out;
}

interface Box {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** Boxes in a part of a file. */
function boxes(bytes: Buffer, start: number, end: number): Box[] {
  const found: Box[] = [];
  for (let at = start; at + 8 <= end && found.length < MAX_BOXES; ) {
    const size = bytes.readUInt32BE(at);
    const type = bytes.toString("latin1", at + 4, at + 8);
    // of a box of more than 4 GiB, and of one that goes to the end, nothing is needed
    if (size < 8 || at + size > end) break;
    found.push({ type, start: at + 8, end: at + size });
    at += size;
  }
  return found;
}

const boxOf = (bytes: Buffer, type: string, { start, end }: Pick<Box, "start" | "end">): Box | undefined =>
  boxes(bytes, start, end).find((box) => box.type === type);

function exifItem(bytes: Buffer): ExifItem | undefined {
  const meta = boxOf(bytes, "meta", { start: 0, end: bytes.length });
  // version and flags come first
  const inside = meta && { start: meta.start + 4, end: meta.end };
  const infos = inside && boxOf(bytes, "iinf", inside);
  const places = inside && boxOf(bytes, "iloc", inside);
  if (infos === undefined || places === undefined) return undefined;
  const id = exifId(bytes, infos);
  return id === undefined ? undefined : new Places(bytes, places).find(id);
}

/** Id of the item of type "Exif". */
function exifId(bytes: Buffer, { start, end }: Box): number | undefined {
  if (end - start < 6) return undefined;
  const first = start + (bytes[start] === 0 ? 6 : 8);
  for (const { type, start: at, end: last } of boxes(bytes, first, end)) {
    if (type !== "infe" || last - at < 12) continue;
    const version = bytes[at];
    if (version !== 2 && version !== 3) continue;
    const idBytes = version === 2 ? 2 : 4;
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
      const extents = Math.min(this.take(2), MAX_ITEMS);
      for (let extent = 0; extent < extents && this.at < this.box.end; extent++) {
        this.take(indexBytes);
        const offsetAt = this.at;
        const offset = this.take(offsetBytes);
        const lengthAt = this.at;
        const length = this.take(lengthBytes);
        // one in several parts, or in another box, is nobody's
        if (own !== id || extents !== 1 || method !== 0 || this.at > this.box.end) continue;
        const start = base + offset;
        return { offsetAt, offsetBytes, lengthAt, lengthBytes, base, start, end: start + length };
      }
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
