import { crc32, deflateSync } from "node:zlib";

/** An entry of a TIFF directory: its tag, its type and its bytes, or the entries of another directory. */
export type ExifEntry = readonly [tag: number, type: number, value: Buffer | readonly ExifEntry[]];

const ASCII = 2;

/** An ASCII entry, as Pillow writes texts. */
export const ascii = (tag: number, text: string): ExifEntry => [tag, ASCII, Buffer.from(`${text}\0`, "utf8")];

/** The user comment in its own directory. */
export const userComment = (code: string, text: Buffer): ExifEntry => [
  0x8769,
  4,
  [[0x9286, 7, Buffer.concat([Buffer.from(code.padEnd(8, "\0"), "latin1"), text])]],
];

/** UTF-16 without a mark. */
export function utf16(text: string, order: "big" | "little"): Buffer {
  const bytes = Buffer.from(text, "utf16le");
  return order === "big" ? bytes.swap16() : bytes;
}

/** A TIFF structure with these entries. */
export function exifBlock(entries: readonly ExifEntry[], order: "big" | "little" = "big"): Buffer {
  const u16 = (value: number) => {
    const bytes = Buffer.alloc(2);
    if (order === "big") bytes.writeUInt16BE(value);
    else bytes.writeUInt16LE(value);
    return bytes;
  };
  const u32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    if (order === "big") bytes.writeUInt32BE(value);
    else bytes.writeUInt32LE(value);
    return bytes;
  };
  const directory = (start: number, list: readonly ExifEntry[]): Buffer => {
    const rows: Buffer[] = [u16(list.length)];
    const values: Buffer[] = [];
    let at = start + 2 + 12 * list.length + 4;
    for (const [tag, type, value] of list) {
      const isInner = !Buffer.isBuffer(value);
      const bytes = isInner ? directory(at, value) : value;
      const inPlace = !isInner && bytes.length <= 4;
      rows.push(u16(tag), u16(type), u32(isInner ? 1 : bytes.length));
      rows.push(inPlace ? Buffer.concat([bytes, Buffer.alloc(4 - bytes.length)]) : u32(at));
      if (inPlace) continue;
      values.push(bytes);
      at += bytes.length;
    }
    return Buffer.concat([...rows, u32(0), ...values]);
  };
  return Buffer.concat([Buffer.from(order === "big" ? "MM" : "II"), u16(42), u32(8), directory(8, entries)]);
}

/** A WebP file of an EXIF chunk alone, after one of another kind. */
export function webpWith(exif: Buffer): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const head = Buffer.alloc(8);
    head.write(type, "latin1");
    head.writeUInt32LE(data.length, 4);
    return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
  };
  const body = Buffer.concat([Buffer.from("WEBP"), chunk("VP8X", Buffer.alloc(11)), chunk("EXIF", exif)]);
  return Buffer.concat([chunk("RIFF", body).subarray(0, 8), body]);
}

/** A JPEG file of these segments alone. */
export function jpegWith(...segments: readonly (readonly [marker: number, data: Buffer])[]): Buffer {
  const parts = segments.map(([marker, data]) => {
    const head = Buffer.from([0xff, marker, 0, 0]);
    head.writeUInt16BE(data.length + 2, 2);
    return Buffer.concat([head, data]);
  });
  return Buffer.concat([Buffer.from([0xff, 0xd8]), ...parts, Buffer.from([0xff, 0xda, 0, 2, 0xff, 0xd9])]);
}

/** The data of an EXIF segment. */
export const exifSegment = (part: Buffer): readonly [number, Buffer] => [
  0xe1,
  Buffer.concat([Buffer.from("Exif\0\0", "latin1"), part]),
];

/** A PNG file of these chunks alone, without pixels. */
export function pngWith(...chunks: readonly (readonly [type: string, data: Buffer])[]): Buffer {
  const parts = chunks.map(([type, data]) => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const [head, tail] = [Buffer.alloc(4), Buffer.alloc(4)];
    head.writeUInt32BE(data.length);
    tail.writeUInt32BE(crc32(body));
    return Buffer.concat([head, body, tail]);
  });
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...parts]);
}

/** The data of a zTXt chunk. */
export const deflatedText = (key: string, text: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${key}\0\0`, "latin1"), deflateSync(text)]);
