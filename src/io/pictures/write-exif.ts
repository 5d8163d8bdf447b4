import { USER_COMMENT } from "./exif.js";

// decision 240
const MODEL = 0x0110;
const MAKE = 0x010f;
const EXIF_DIRECTORY = 0x8769;
const ASCII = 2;
const LONG = 4;
const UNDEFINED = 7;
const HEADER_BYTES = 8;
const ENTRY_BYTES = 12;

/** Key of the text that A1111 writes as the user comment. */
const PARAMETERS_KEY = "parameters";

interface Entry {
  readonly tag: number;
  readonly type: number;
  readonly count: number;
  /** Its value, or the offset of it, once that is known. */
  readonly value: Buffer;
}

/**
 * Texts as an EXIF block in the layout that ComfyUI gives WebP files: "prompt:…" under the tag Model, the others, "key:…",
 * from Make on downwards, and `parameters` as A1111 writes it, the user comment in UTF-16. Values lie in the order of the
 * texts.
 */
export function writeExif(texts: readonly (readonly [key: string, text: string])[]): Buffer {
  const entries: Entry[] = [];
  let comment: Buffer | undefined;
  let tag = MAKE;
  for (const [key, text] of texts) {
    if (key === PARAMETERS_KEY) comment = userComment(text);
    else {
      const value = Buffer.from(`${key}:${text}\0`, "utf8");
      entries.push({ tag: key === "prompt" ? MODEL : tag--, type: ASCII, count: value.length, value });
    }
  }
  const main = directoryBytes(entries.length + (comment === undefined ? 0 : 1));
  const inner = comment === undefined ? 0 : directoryBytes(1);
  const innerAt = HEADER_BYTES + main;
  if (comment !== undefined) {
    entries.push({ tag: EXIF_DIRECTORY, type: LONG, count: 1, value: u32(innerAt) });
  }
  const end = innerAt + inner;
  const first = directory(entries, end);
  const comments =
    comment === undefined
      ? directory([], end)
      : directory([{ tag: USER_COMMENT, type: UNDEFINED, count: comment.length, value: comment }], first.end);
  const parts = [Buffer.from("MM\0*\0\0\0\x08", "latin1"), first.bytes];
  if (comment !== undefined) parts.push(comments.bytes);
  return Buffer.concat([...parts, ...first.values, ...(comment === undefined ? [] : comments.values)]);
}

const directoryBytes = (count: number): number => 2 + ENTRY_BYTES * count + 4;

/** A directory whose larger values lie from `at` on. Entries stand by their tags. */
function directory(entries: readonly Entry[], at: number) {
  const values: Buffer[] = [];
  let end = at;
  const rows = entries.map(({ tag, type, count, value }) => {
    const isInPlace = value.length <= 4;
    const place = isInPlace ? Buffer.concat([value, Buffer.alloc(4 - value.length)]) : u32(end);
    if (!isInPlace) {
      values.push(value);
      end += value.length;
    }
    return { tag, bytes: Buffer.concat([u16(tag), u16(type), u32(count), place]) };
  });
  rows.sort((a, b) => a.tag - b.tag);
  return { bytes: Buffer.concat([u16(rows.length), ...rows.map(({ bytes }) => bytes), u32(0)]), values, end };
}

const userComment = (text: string): Buffer =>
  Buffer.concat([Buffer.from("UNICODE\0", "latin1"), Buffer.from(text, "utf16le").swap16()]);

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
