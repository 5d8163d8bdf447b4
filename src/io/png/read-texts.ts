import { crc32, inflateSync } from "node:zlib";
import { describe, LatentkitError } from "../../base/errors.js";

const SIGNATURE_BYTES = 8;
const LENGTH_BYTES = 4;
/** Bytes of a chunk besides its data: length and type before it, checksum after it. */
const CHUNK_BYTES = 12;
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
  for (let at = SIGNATURE_BYTES; at + CHUNK_BYTES <= bytes.length; ) {
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
  tEXt: (data) => keyed(data, (value) => ({ value, isDeflated: false, encoding: "latin1" })),
  zTXt: (data) => keyed(data, (rest) => ({ value: rest.subarray(1), isDeflated: true, encoding: "latin1" })),
  iTXt: (data) =>
    keyed(data, (rest) => {
      const language = rest.indexOf(0, 2);
      const translated = language < 0 ? -1 : rest.indexOf(0, language + 1);
      if (translated < 0) return undefined;
      return { value: rest.subarray(translated + 1), isDeflated: rest[0] === 1, encoding: "utf8" };
    }),
};

function keyed(data: Buffer, take: (rest: Buffer) => Omit<Parts, "key"> | undefined): Parts | undefined {
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
