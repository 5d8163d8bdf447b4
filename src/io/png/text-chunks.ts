import { isUtf8 } from "node:buffer";
import { crc32, inflateSync } from "node:zlib";
import { bufferOf } from "../../base/bytes.js";
import { describe, LatentkitError, valueError } from "../../base/errors.js";

const SIGNATURE_BYTES = 8;
/** Bytes of a chunk before its data: length and type. */
const HEAD_BYTES = 8;
const CHECKSUM_BYTES = 4;
const MAX_KEY_BYTES = 79;

/** A chunk of a PNG file. */
interface Chunk {
  readonly type: string;
  readonly data: Buffer;
  /** Type and data, which the checksum is of. */
  readonly checked: Buffer;
  readonly checksum: number;
}

/** Chunks of a PNG file before its end, without one that is cut off. */
function* chunksOf(file: Uint8Array): Generator<Chunk> {
  const bytes = bufferOf(file);
  for (let at = SIGNATURE_BYTES; at + HEAD_BYTES + CHECKSUM_BYTES <= bytes.length; ) {
    const end = at + HEAD_BYTES + bytes.readUInt32BE(at);
    const type = bytes.toString("latin1", at + 4, at + HEAD_BYTES);
    if (type === "IEND" || end + CHECKSUM_BYTES > bytes.length) return;
    const checked = bytes.subarray(at + 4, end);
    yield { type, data: checked.subarray(4), checked, checksum: bytes.readUInt32BE(end) };
    at = end + CHECKSUM_BYTES;
  }
}

/** Keys of the texts in a PNG file in order, repeated keys included. */
export function textKeys(file: Uint8Array): string[] {
  const keys: string[] = [];
  for (const { type, data } of chunksOf(file)) if (Object.hasOwn(PARTS, type)) keys.push(keyOf(data) ?? "");
  return keys;
}

/** Key of a text chunk; undefined if it is malformed. */
function keyOf(data: Buffer): string | undefined {
  const end = data.indexOf(0);
  return end < 1 || end > MAX_KEY_BYTES ? undefined : data.toString("latin1", 0, end);
}

/** Pairs of texts for a file, checked: without NUL, under keys that `checkTextKey` takes. Fails with value.invalid. */
export function checkTexts(
  text: Readonly<Record<string, string>> | readonly (readonly [string, string])[],
): [string, string][] {
  const pairs = Array.isArray(text) ? (text as readonly (readonly [string, string])[]) : Object.entries(text);
  return pairs.map((pair) => {
    if (!Array.isArray(pair)) throw valueError("value.invalid", "PNG text", "pairs [key, text]", pair);
    const [key, value] = pair as readonly [string, string];
    checkTextKey(key);
    if (typeof value !== "string" || value.includes("\0"))
      throw valueError("value.invalid", `PNG text ${JSON.stringify(key)}`, "text without NUL", value);
    return [key, value];
  });
}

/** Throws value.invalid unless a key has 1 to 79 printable characters of Latin-1, as the format requires. */
export function checkTextKey(key: string): void {
  if (typeof key === "string" && /^[\u0020-\u007e\u00a0-\u00ff]{1,79}$/.test(key)) return;
  throw valueError("value.invalid", "PNG text key", "1 to 79 printable Latin-1 characters", key);
}

/** Longest text, and all texts of a file together: the bounds of `decodePng`. */
const MAX_TEXT_BYTES = 2 ** 24;
const MAX_TEXTS_BYTES = 2 ** 26;

/**
 * Texts of a PNG file by key, without its pixels: chunks tEXt, zTXt and iTXt before and after them; of several with one
 * key, the last. A damaged chunk is passed over, and so is one that is cut off. tEXt and zTXt are Latin-1, but text in
 * UTF-8 is read as such: programs write it there. Throws png.too-large.
 */
export function readPngTexts(file: Uint8Array): Record<string, string> {
  const texts: [string, string][] = [];
  let left = MAX_TEXTS_BYTES;
  for (const { type, data, checked, checksum } of chunksOf(file)) {
    const parts = PARTS[type]?.(data);
    if (parts === undefined || crc32(checked) !== checksum) continue;
    const value = parts.isDeflated ? inflated(parts, left) : parts.value;
    if (value === undefined) continue;
    if (value.length > Math.min(left, MAX_TEXT_BYTES)) throw tooLong(parts.key, left, value.length);
    left -= value.length;
    texts.push([parts.key, value.toString(parts.isLatin && !isUtf8(value) ? "latin1" : "utf8")]);
  }
  return Object.fromEntries(texts);
}

/** Key and value of a text chunk. */
interface Parts {
  readonly key: string;
  readonly value: Buffer;
  readonly isDeflated: boolean;
  /** Whether the format has it in Latin-1. */
  readonly isLatin: boolean;
}

/** Takes the data of each type of text chunk apart; undefined if it is malformed. */
const PARTS: Readonly<Record<string, (data: Buffer) => Parts | undefined>> = {
  tEXt: (data) => keyedParts(data, (value) => ({ value, isDeflated: false, isLatin: true })),
  zTXt: (data) => keyedParts(data, (rest) => ({ value: rest.subarray(1), isDeflated: true, isLatin: true })),
  iTXt: (data) =>
    keyedParts(data, (rest) => {
      const language = rest.indexOf(0, 2);
      const translated = language < 0 ? -1 : rest.indexOf(0, language + 1);
      if (translated < 0) return undefined;
      return { value: rest.subarray(translated + 1), isDeflated: rest[0] === 1, isLatin: false };
    }),
};

function keyedParts(data: Buffer, take: (rest: Buffer) => Omit<Parts, "key"> | undefined): Parts | undefined {
  const key = keyOf(data);
  const parts = key === undefined ? undefined : take(data.subarray(key.length + 1));
  return parts && { key: key!, ...parts };
}

function inflated({ key, value }: Parts, left: number): Buffer | undefined {
  try {
    return inflateSync(value, { maxOutputLength: Math.max(1, Math.min(left, MAX_TEXT_BYTES)) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLong(key, left);
    return undefined;
  }
}

function tooLong(key: string, left: number, length?: number): LatentkitError {
  const isAlone = left >= MAX_TEXT_BYTES;
  const expected = isAlone
    ? `at most ${MAX_TEXT_BYTES} bytes`
    : `at most ${MAX_TEXTS_BYTES} bytes in all texts together`;
  const received = isAlone && length !== undefined ? String(length) : "more";
  return new LatentkitError("png.too-large", `PNG, text ${describe(key)}: expected ${expected}, received ${received}.`);
}

/** Signature and header of a PNG file, before which no chunk may stand. */
const HEADER_BYTES = 33;

/** Whether a text needs a chunk iTXt: tEXt holds only Latin-1, which must not look like UTF-8. */
export const isInternational = (text: string): boolean =>
  /[\u0100-\uffff]/.test(text) || (/[\u0080-\u00ff]/.test(text) && isUtf8(Buffer.from(text, "latin1")));

/** A PNG file with texts in UTF-8 after its header, as chunks iTXt. */
export function withInternationalTexts(file: Buffer, texts: readonly (readonly [key: string, text: string])[]): Buffer {
  if (texts.length === 0) return file;
  const chunks = texts.map(([key, text]) => {
    // neither compressed nor translated
    const body = Buffer.concat([Buffer.from(`iTXt${key}\0\0\0\0\0`, "latin1"), Buffer.from(text, "utf8")]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(body.length - 4);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  });
  const parts = [file.subarray(0, HEADER_BYTES), ...chunks, file.subarray(HEADER_BYTES)];
  // separate memory, which may go to the pool of tensors: Buffer.concat shares Node's pool for short files
  const out = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(out, at);
  return out;
}
