import { bufferOf } from "../../base/bytes.js";

/** A value of a directory. */
interface ReadEntry {
  readonly tag: number;
  readonly type: number;
  readonly bytes: Buffer;
}

/** Text of an EXIF block and its tag. */
export interface ExifText {
  readonly tag: number;
  readonly text: string;
}

/** Bytes of one value of each type: those that can hold text or lead to another directory. */
const TYPE_BYTES: ReadonlyMap<number, number> = new Map([
  [1, 1],
  [2, 1],
  [3, 2],
  [4, 4],
  [7, 1],
]);
const BYTE = 1;
const ASCII = 2;
const LONG = 4;
const UNDEFINED = 7;

export const USER_COMMENT = 0x9286;
const EXIF_DIRECTORY = 0x8769;

/** The most entries of a directory that are read; cameras write under a hundred. */
const MAX_ENTRIES = 1000;
/** The most bytes of text in one block, which entries may share over and over. */
const MAX_TEXT_BYTES = 2 ** 26;

/**
 * Texts of a TIFF structure, as EXIF blocks are: those of the first directory, and the user comment of the EXIF directory.
 * What is damaged is passed over.
 */
export function exifTexts(block: Uint8Array): ExifText[] {
  const bytes = bufferOf(block);
  const order = bytes.toString("latin1", 0, 4);
  if (order !== "II*\0" && order !== "MM\0*") return [];
  const reader = new Reader(bytes, order.startsWith("II"));
  const main = reader.directory(reader.u32(4));
  const exif = main.find(({ tag, type }) => tag === EXIF_DIRECTORY && type === LONG);
  const comments =
    exif === undefined ? [] : reader.directory(reader.u32Of(exif)).filter(({ tag }) => tag === USER_COMMENT);
  const texts = [...main, ...comments].map((entry) => ({ tag: entry.tag, text: textOf(entry) }));
  return texts.filter((entry): entry is ExifText => entry.text !== undefined);
}

class Reader {
  #left = MAX_TEXT_BYTES;
  readonly #bytes: Buffer;
  readonly #isLittle: boolean;

  constructor(bytes: Buffer, isLittle: boolean) {
    this.#bytes = bytes;
    this.#isLittle = isLittle;
  }

  u32(at: number): number {
    if (at + 4 > this.#bytes.length) return 0;
    return this.#isLittle ? this.#bytes.readUInt32LE(at) : this.#bytes.readUInt32BE(at);
  }

  u32Of({ bytes }: ReadEntry): number {
    if (bytes.length < 4) return 0;
    return this.#isLittle ? bytes.readUInt32LE(0) : bytes.readUInt32BE(0);
  }

  directory(start: number): ReadEntry[] {
    const entries: ReadEntry[] = [];
    if (start < 8 || start + 2 > this.#bytes.length) return entries;
    const count = Math.min(this.#u16(start), MAX_ENTRIES);
    for (let at = start + 2; entries.length < count && at + 12 <= this.#bytes.length; at += 12) {
      entries.push({ tag: this.#u16(at), type: this.#u16(at + 2), bytes: this.#value(at) });
    }
    return entries;
  }

  #u16(at: number): number {
    return this.#isLittle ? this.#bytes.readUInt16LE(at) : this.#bytes.readUInt16BE(at);
  }

  #value(at: number): Buffer {
    const length = this.u32(at + 4) * (TYPE_BYTES.get(this.#u16(at + 2)) ?? 0);
    const start = length <= 4 ? at + 8 : this.u32(at + 8);
    if (length > this.#left || start + length > this.#bytes.length) return Buffer.alloc(0);
    this.#left -= length;
    return this.#bytes.subarray(start, start + length);
  }
}

function textOf({ tag, type, bytes }: ReadEntry): string | undefined {
  if (bytes.length === 0) return undefined;
  if (tag === USER_COMMENT) return userComment(bytes);
  if (type !== ASCII && type !== BYTE && type !== UNDEFINED) return undefined;
  return utf8Text(bytes);
}

/** UTF-8 up to the first NUL, as programs write it against the standard's ASCII; Latin-1 if it is not valid UTF-8. */
function utf8Text(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  const part = end < 0 ? bytes : bytes.subarray(0, end);
  const text = part.toString("utf8");
  return text.includes("\ufffd") ? part.toString("latin1") : text;
}

const CODE_BYTES = 8;

/** Text of a user comment, which begins with the name of its encoding. */
function userComment(bytes: Buffer): string | undefined {
  const code = bytes.toString("latin1", 0, CODE_BYTES).replace(/\0+$/, "");
  const rest = bytes.subarray(CODE_BYTES);
  if (code === "UNICODE") return utf16Text(rest);
  if (code === "ASCII" || code === "") return utf8Text(rest);
  return code === "JIS" ? undefined : utf8Text(bytes);
}

/** UTF-16 in the byte order of its mark, else in the one that gives more letters: programs write either in any block. */
function utf16Text(bytes: Buffer): string {
  const even = bytes.subarray(0, bytes.length - (bytes.length % 2));
  let zeros = 0;
  for (let at = 0; at + 1 < even.length; at += 2) zeros += Number(even[at] === 0) - Number(even[at + 1] === 0);
  const mark = even.length >= 2 ? even.readUInt16BE(0) : 0;
  const isBig = mark === 0xfeff || (mark !== 0xfffe && zeros >= 0);
  const text = (isBig ? Buffer.from(even).swap16() : even).toString("utf16le");
  return text.replace(/^\ufeff/, "").split("\0", 1)[0]!;
}

// Laid out as ComfyUI does in WebP, so that its readers find the graph; EXIF over 64 KiB takes several segments.
const MODEL = 0x0110;
const MAKE = 0x010f;
const HEADER = Buffer.from("MM\0*\0\0\0\x08", "latin1");
const ENTRY_BYTES = 12;

/** Key of the text that A1111 writes as the user comment. */
const PARAMETERS_KEY = "parameters";

interface WrittenEntry {
  readonly tag: number;
  readonly type: number;
  readonly value: Buffer;
}

/**
 * Texts as an EXIF block in the layout that ComfyUI gives WebP files: "prompt:…" under the tag Model, the others, "key:…",
 * from Make on downwards, and `parameters` as A1111 writes it, the user comment in UTF-16. Values lie in the order of the
 * texts.
 */
export function writeExif(texts: readonly (readonly [key: string, text: string])[]): Buffer {
  const entries: WrittenEntry[] = [];
  const comments: WrittenEntry[] = [];
  let tag = MAKE;
  for (const [key, text] of texts) {
    if (key === PARAMETERS_KEY) comments[0] = { tag: USER_COMMENT, type: UNDEFINED, value: userCommentBytes(text) };
    else entries.push({ tag: key === "prompt" ? MODEL : tag--, type: ASCII, value: Buffer.from(`${key}:${text}\0`) });
  }
  const innerAt = HEADER.length + directoryBytes(entries.length + comments.length);
  if (comments.length > 0) entries.push({ tag: EXIF_DIRECTORY, type: LONG, value: u32(innerAt) });
  const main = directoryOf(entries, comments.length > 0 ? innerAt + directoryBytes(1) : innerAt);
  const inner = comments.length > 0 ? [directoryOf(comments, main.end)] : [];
  const directories = [main, ...inner];
  return Buffer.concat([
    HEADER,
    ...directories.map(({ bytes }) => bytes),
    ...directories.flatMap(({ values }) => values),
  ]);
}

const directoryBytes = (count: number): number => 2 + ENTRY_BYTES * count + 4;

/** A directory whose larger values lie from `at` on. Entries stand by their tags. */
function directoryOf(entries: readonly WrittenEntry[], at: number) {
  const values: Buffer[] = [];
  let end = at;
  const rows = entries.map(({ tag, type, value }) => {
    const count = type === LONG ? 1 : value.length;
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

const userCommentBytes = (text: string): Buffer =>
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
