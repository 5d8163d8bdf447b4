/** A box of an ISO media file: its type and content. */
interface Box {
  readonly type: string;
  readonly content: Buffer;
}

/** EXIF block of an AVIF file (ISO/IEC 23008-12, annex A); undefined where it has none. */
export function avifExif(file: Uint8Array): Uint8Array | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const meta = find(boxes(bytes), "meta");
  // the content of a full box begins with a version and flags
  const inner = meta === undefined ? [] : [...boxes(meta.content.subarray(4))];
  const id = exifItem(find(inner, "iinf")?.content);
  const parts = id === undefined ? undefined : itemParts(find(inner, "iloc")?.content, id);
  if (parts === undefined) return undefined;
  const source = parts.isInside ? (find(inner, "idat")?.content ?? Buffer.alloc(0)) : bytes;
  const total = parts.extents.reduce((sum, [, length]) => sum + length, 0);
  if (total > source.length) return undefined;
  const item = Buffer.concat(parts.extents.map(([start, length]) => source.subarray(start, start + length)));
  // the item begins with the distance to the block
  return item.length < 4 ? undefined : item.subarray(4 + item.readUInt32BE(0));
}

const find = (list: Iterable<Box>, type: string): Box | undefined => [...list].find((box) => box.type === type);

function* boxes(bytes: Buffer): Generator<Box> {
  for (let at = 0; at + 8 <= bytes.length; ) {
    const short = bytes.readUInt32BE(at);
    const isLong = short === 1 && at + 16 <= bytes.length;
    const size = isLong ? Number(bytes.readBigUInt64BE(at + 8)) : short === 0 ? bytes.length - at : short;
    const head = isLong ? 16 : 8;
    if (size < head) return;
    yield { type: bytes.toString("latin1", at + 4, at + 8), content: bytes.subarray(at + head, at + size) };
    at += size;
  }
}

/** Id of the item that is an EXIF block. */
function exifItem(list: Buffer | undefined): number | undefined {
  if (list === undefined || list.length < 8) return undefined;
  for (const { type, content } of boxes(list.subarray(list[0] === 0 ? 6 : 8))) {
    if (type !== "infe" || content.length < 12 || content[0]! < 2) continue;
    const isLong = content[0] === 3;
    const end = isLong ? 8 : 6;
    if (content.toString("latin1", end + 2, end + 6) === "Exif") return content.readUIntBE(4, end - 4);
  }
  return undefined;
}

interface ItemParts {
  /** In the box of item data, rather than anywhere in the file. */
  readonly isInside: boolean;
  readonly extents: readonly (readonly [start: number, length: number])[];
}

/** Places of an item's bytes; undefined where the list is damaged or another item's alone. */
function itemParts(list: Buffer | undefined, wanted: number): ItemParts | undefined {
  if (list === undefined || list.length < 6) return undefined;
  const version = list[0]!;
  const [offsetBytes, lengthBytes] = [list[4]! >> 4, list[4]! & 15];
  const [baseBytes, indexBytes] = [list[5]! >> 4, version === 0 ? 0 : list[5]! & 15];
  let at = 6;
  const read = (length: number): number => {
    const value = length === 0 ? 0 : length > 6 ? Number(list.readBigUInt64BE(at)) : list.readUIntBE(at, length);
    at += length;
    return value;
  };
  const idBytes = version < 2 ? 2 : 4;
  try {
    for (let left = read(idBytes); left > 0; left--) {
      const id = read(idBytes);
      const method = version === 0 ? 0 : read(2) & 15;
      read(2); // the file itself
      const base = read(baseBytes);
      const extents: [number, number][] = [];
      let count = read(2);
      // extents without a length are the whole item, and only one can be that
      if (count > 1 && lengthBytes === 0) return undefined;
      for (; count > 0; count--) {
        read(indexBytes);
        const start = base + read(offsetBytes);
        extents.push([start, read(lengthBytes)]);
      }
      if (id === wanted) return { isInside: method === 1, extents };
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return undefined;
}
