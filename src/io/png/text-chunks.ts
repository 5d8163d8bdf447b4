import { crc32, inflateSync } from "node:zlib";
import { describe, LatentkitError } from "../../base/errors.js";

const SIGNATURE_BYTES = 8;
/** Bytes of a chunk besides its data: length and type before it, checksum after it. */
const CHUNK_BYTES = 12;
const TEXT_TYPES: ReadonlySet<string> = new Set(["tEXt", "zTXt", "iTXt"]);
const MAX_KEY_BYTES = 79;

/** Keys of the texts in a PNG file in order, repeated keys included. */
export function textKeys(file: Uint8Array): string[] {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const keys: string[] = [];
  for (let at = SIGNATURE_BYTES; at + CHUNK_BYTES <= bytes.length; at += CHUNK_BYTES + bytes.readUInt32BE(at)) {
    if (!TEXT_TYPES.has(bytes.toString("latin1", at + 4, at + 8))) continue;
    const key = bytes.toString("latin1", at + 8, at + 8 + MAX_KEY_BYTES + 1);
    keys.push(key.slice(0, Math.max(0, key.indexOf("\0"))));
  }
  return keys;
}

/** Pairs of texts for a file, checked: without NUL, under keys that `checkTextKey` takes. Fails with value.invalid. */
export function checkTexts(
  text: Readonly<Record<string, string>> | readonly (readonly [string, string])[],
): [string, string][] {
  const pairs = Array.isArray(text) ? (text as readonly (readonly [string, string])[]) : Object.entries(text);
  return pairs.map((pair) => {
    if (!Array.isArray(pair)) {
      throw new LatentkitError("value.invalid", `PNG text: expected pairs [key, text], received ${describe(pair)}.`);
    }
    const [key, value] = pair as readonly [string, string];
    checkTextKey(key);
    if (typeof value !== "string" || value.includes("\0")) {
      throw new LatentkitError(
        "value.invalid",
        `PNG text ${JSON.stringify(key)}: expected text without NUL, received ${describe(value)}.`,
      );
    }
    return [key, value];
  });
}

/** Throws value.invalid unless a key has 1 to 79 printable characters of Latin-1, as the format requires. */
export function checkTextKey(key: string): void {
  if (typeof key === "string" && /^[\u0020-\u007e\u00a0-\u00ff]{1,79}$/.test(key)) return;
  throw new LatentkitError(
    "value.invalid",
    `PNG text key: expected 1 to 79 printable Latin-1 characters, received ${describe(key)}.`,
  );
}

const PNG_SIGNATURE_BYTES = 8;
const LENGTH_BYTES = 4;
/** Bytes of a chunk besides its data: length and type before it, checksum after it. */
const CHUNK_FRAME_BYTES = 12;
/** Longest text, and all texts of a file together: the bounds of `decodePng`. */
const MAX_TEXT_BYTES = 2 ** 24;
const MAX_TEXTS_BYTES = 2 ** 26;

/**
 * Texts of a PNG file by key, without its pixels: chunks tEXt, zTXt and iTXt before and after them; of several with one
 * key, the last. A damaged chunk is passed over, and what a file lacks at its end is missing. Throws png.too-large.
 */
export function readPngTexts(file: Uint8Array): Record<string, string> {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const texts: [string, string][] = [];
  let left = MAX_TEXTS_BYTES;
  for (let at = PNG_SIGNATURE_BYTES; at + CHUNK_FRAME_BYTES <= bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const type = bytes.toString("latin1", at + LENGTH_BYTES, at + 8);
    const end = at + 8 + length;
    if (type === "IEND" || end + LENGTH_BYTES > bytes.length) break;
    const parts = PARTS[type]?.(bytes.subarray(at + 8, end));
    if (parts !== undefined && crc32(bytes.subarray(at + LENGTH_BYTES, end)) === bytes.readUInt32BE(end)) {
      const value = parts.isDeflated ? inflated(parts, left) : parts.value;
      if (value !== undefined) {
        if (value.length > Math.min(left, MAX_TEXT_BYTES)) throw tooLong(parts.key, left, value.length);
        left -= value.length;
        texts.push([parts.key, value.toString(parts.encoding)]);
      }
    }
    at = end + LENGTH_BYTES;
  }
  return Object.fromEntries(texts);
}

/** Key and value of a text chunk. */
interface Parts {
  readonly key: string;
  readonly value: Buffer;
  readonly isDeflated: boolean;
  readonly encoding: "latin1" | "utf8";
}

/** Takes the data of each type of chunk apart; undefined where it is malformed. */
const PARTS: Readonly<Record<string, (data: Buffer) => Parts | undefined>> = {
  tEXt: (data) => keyedParts(data, (value) => ({ value, isDeflated: false, encoding: "latin1" })),
  zTXt: (data) => keyedParts(data, (rest) => ({ value: rest.subarray(1), isDeflated: true, encoding: "latin1" })),
  iTXt: (data) =>
    keyedParts(data, (rest) => {
      const language = rest.indexOf(0, 2);
      const translated = language < 0 ? -1 : rest.indexOf(0, language + 1);
      if (translated < 0) return undefined;
      return { value: rest.subarray(translated + 1), isDeflated: rest[0] === 1, encoding: "utf8" };
    }),
};

function keyedParts(data: Buffer, take: (rest: Buffer) => Omit<Parts, "key"> | undefined): Parts | undefined {
  const end = data.indexOf(0);
  if (end < 1 || end > 79) return undefined;
  const parts = take(data.subarray(end + 1));
  return parts && { key: data.toString("latin1", 0, end), ...parts };
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

/** Signature and header of a PNG file: what no chunk may stand before. */
const HEADER_BYTES = 33;

/** Whether a text needs a chunk iTXt: tEXt holds Latin-1 alone. */
export const isInternational = (text: string): boolean => /[\u0100-\uffff]/.test(text);

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
  // memory of its own, which may go to the pool of tensors; Buffer.concat takes that of short files from Node's
  const out = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(out, at);
  return out;
}
