import { bufferOf } from "../base/bytes.js";
import { describe, LatentkitError, reasonOf } from "../base/errors.js";
import { Tensor } from "../tensor/tensor.js";
import { isPlainObject, keysInOrder, parseJson } from "./json/lossless.js";
import { isEscaped } from "./json/parse.js";

/** A tensor as a file holds it; `bytes` is a view of the file. */
export interface StoredTensor extends Pick<StoredEntry, "dtype" | "shape"> {
  readonly bytes: Uint8Array;
}

export interface SafetensorsFile extends Pick<SafetensorsHeader, "metadata"> {
  readonly tensors: ReadonlyMap<string, StoredTensor>;
}

/** Reads a .safetensors file, whose values are not copied. Fails as headerLength and parseHeader. */
export function readSafetensors(file: Uint8Array): SafetensorsFile {
  const length = headerLength(file.subarray(0, LENGTH_BYTES), file.length);
  const { metadata, entries } = parseHeader(file.subarray(LENGTH_BYTES, LENGTH_BYTES + length), file.length);
  const tensors = new Map<string, StoredTensor>();
  for (const [name, { dtype, shape, from, to }] of entries)
    tensors.set(name, { dtype, shape, bytes: file.subarray(from, to) });
  return { metadata, tensors };
}

/** Copies the values of a stored tensor, F32, F16 or BF16, exactly. Fails with safetensors.invalid, tensor.too-large. */
export function toTensor({ dtype, shape, bytes }: StoredTensor): Tensor {
  const out = Tensor.unfilled(shape);
  const { data } = out;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dtype === "F32") {
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength).set(bytes);
  } else if (dtype === "BF16") {
    const words = new Uint32Array(data.buffer, data.byteOffset, data.length);
    for (let i = 0; i < words.length; i++) words[i] = view.getUint16(2 * i, true) << 16;
  } else if (dtype === "F16") {
    for (let i = 0; i < data.length; i++) data[i] = halfValue(view.getUint16(2 * i, true));
  } else throw invalid("F32, F16 or BF16", dtype);
  return out;
}

/** The value of a binary16 number: 1 bit of sign, 5 of exponent, 10 of fraction. */
export function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Values begin at a multiple of this, so that a reader may use them where they are. */
const ALIGNMENT = 8;

/** Bytes of a .safetensors file with these tensors as F32, in their order, and texts beside them. */
export function writeSafetensors(
  tensors: Readonly<Record<string, Tensor>>,
  metadata: readonly (readonly [string, string])[] = [],
): Uint8Array {
  const entries: [string, unknown][] = metadata.length === 0 ? [] : [["__metadata__", Object.fromEntries(metadata)]];
  let end = 0;
  for (const [name, { shape, size }] of Object.entries(tensors)) {
    const from = end;
    end += size * Float32Array.BYTES_PER_ELEMENT;
    entries.push([name, { dtype: "F32", shape, data_offsets: [from, end] }]);
  }
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const padded = Math.ceil(header.length / ALIGNMENT) * ALIGNMENT;
  const file = new Uint8Array(LENGTH_BYTES + padded + end).fill(0x20, LENGTH_BYTES, LENGTH_BYTES + padded);
  new DataView(file.buffer).setBigUint64(0, BigInt(padded), true);
  file.set(header, LENGTH_BYTES);
  let at = LENGTH_BYTES + padded;
  for (const { data } of Object.values(tensors)) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return file;
}

/** Bytes of one value, by the format's name of its type. */
export const VALUE_BYTES = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E4M3: 1,
  F8_E5M2: 1,
  U16: 2,
  I16: 2,
  F16: 2,
  BF16: 2,
  U32: 4,
  I32: 4,
  F32: 4,
  U64: 8,
  I64: 8,
  F64: 8,
} as const;

export type StoredType = keyof typeof VALUE_BYTES;

/** Bytes before the header: its length as a 64-bit integer, least byte first. */
export const LENGTH_BYTES = 8;

/** The format allows 100 MB; the largest headers in use, those of trainers that log into them, have a tenth of this. */
const MAX_HEADER = 2 ** 25;
/** Files of the largest models have a tenth of this. */
const MAX_TENSORS = 65_536;
/** Values of a header: type, two bytes and five sides for each tensor, and as many texts of metadata. */
const MAX_VALUES = 9 * MAX_TENSORS;
/** Root, tensors and metadata, lists of sizes. */
const MAX_DEPTH = 3;
/** Bytes of a key: the longest in use have a hundredth of this. */
const MAX_KEY = 65_535;
const METADATA = "__metadata__";

/** A tensor of a file: its type, its shape and the place of its values in the file. */
export interface StoredEntry {
  readonly dtype: StoredType;
  readonly shape: readonly number[];
  /** First byte, counted from the beginning of the file, and the one after the last. */
  readonly from: number;
  readonly to: number;
}

export interface SafetensorsHeader {
  readonly metadata: Readonly<Record<string, string>>;
  /** In the order of the header. */
  readonly entries: ReadonlyMap<string, StoredEntry>;
}

/**
 * Length of the header in bytes, from the first 8 bytes of a file of `fileBytes`. Throws safetensors.invalid if the
 * file has no room for it, and for more than 32 MiB.
 */
export function headerLength(start: Uint8Array, fileBytes: number): number {
  if (start.length < LENGTH_BYTES) throw invalid("at least 8 bytes", `${start.length}`);
  const length = new DataView(start.buffer, start.byteOffset, LENGTH_BYTES).getBigUint64(0, true);
  const most = Math.min(MAX_HEADER, fileBytes - LENGTH_BYTES);
  if (length > most) throw invalid(`a header of at most ${most} bytes`, `a length of ${length}`);
  return Number(length);
}

/** Reads the header of a file of `fileBytes`, `header` being only its bytes. Throws as headerJson and headerOf. */
export function parseHeader(header: Uint8Array, fileBytes: number): SafetensorsHeader {
  return headerOf(headerJson(header), header.length, fileBytes);
}

/**
 * Reads the tensors of a header of `headerBytes` in a file of `fileBytes`. Every value belongs to exactly one tensor:
 * throws safetensors.invalid for offsets out of the file, gaps and overlaps, for shapes that do not fit the bytes, and for
 * types that the format does not have.
 */
export function headerOf(root: Record<string, unknown>, headerBytes: number, fileBytes: number): SafetensorsHeader {
  const start = LENGTH_BYTES + headerBytes;
  const entries = new Map<string, StoredEntry>();
  for (const name of keysInOrder(root)) if (name !== METADATA) entries.set(name, readEntry(name, root[name], start));
  const inOrder = [...entries].sort(([, a], [, b]) => a.from - b.from || a.to - b.to);
  let end = start;
  for (const [name, { from, to }] of inOrder) {
    if (from !== end) throw invalid(`tensor ${describe(name)} to begin at byte ${end}`, `${from}`);
    end = to;
  }
  if (end !== fileBytes) {
    if (fileBytes > end) throw invalid(`a file of ${end} bytes, which its tensors need`, `${fileBytes}`);
    throw fault(`the file is cut off: its tensors need ${end} bytes, it has ${fileBytes}; download or copy it again`);
  }
  return { metadata: readMetadata(root[METADATA]), entries };
}

/**
 * Reads the object that a header is. Throws safetensors.invalid for other bytes, and before they are parsed for more than
 * 65,536 tensors and for keys of more than 65,535 bytes.
 */
export function headerJson(header: Uint8Array): Record<string, unknown> {
  const { members, values, longestKey } = countOf(header);
  if (members > MAX_TENSORS + 1) throw invalid(`at most ${MAX_TENSORS} tensors in a header`, `${members}`);
  if (values > MAX_VALUES) throw invalid(`at most ${MAX_VALUES} values in a header`, `${values}`);
  if (longestKey > MAX_KEY) throw invalid(`keys of at most ${MAX_KEY} bytes in a header`, `${longestKey}`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(header);
  } catch (error) {
    throw invalid("a header in UTF-8", "other bytes", error);
  }
  let root: unknown;
  try {
    root = parseJson(text, { maxDepth: MAX_DEPTH, what: "header" });
  } catch (error) {
    throw fault(`the header is not valid JSON (${reasonOf(error)})`, error);
  }
  if (!isPlainObject(root)) throw invalid("an object as header", describe(root));
  return root;
}

const [QUOTE, BACKSLASH, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = Buffer.from(
  '"\\,:{}[]',
) as unknown as number[];
/** The last of the four characters that JSON takes as space; those of less are refused anyway. */
const SPACE = 0x20;

/**
 * Members of the root, which are tensors and metadata, and values at any depth, by their commas outside of texts; bytes of
 * the longest key of those that are longer than MAX_KEY.
 */
function countOf(header: Uint8Array): { members: number; values: number; longestKey: number } {
  const bytes = bufferOf(header);
  let [members, values, depth, longestKey] = [1, 1, 0, 0];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      const from = at + 1;
      for (at = bytes.indexOf(QUOTE!, at + 1); at > 0 && isEscaped(bytes, at, BACKSLASH!); )
        at = bytes.indexOf(QUOTE!, at + 1);
      // a text without an end, which the parser refuses
      if (at <= 0) break;
      if (at - from > MAX_KEY && isBeforeColon(bytes, at)) longestKey = Math.max(longestKey, at - from);
    } else if (byte === OPEN || byte === OPEN_LIST) {
      // as deep the parser refuses it
      if (++depth > MAX_DEPTH) break;
    } else if (byte === CLOSE || byte === CLOSE_LIST) depth--;
    else if (byte === COMMA) {
      values++;
      if (depth === 1) members++;
    }
  }
  return { members, values, longestKey };
}

function isBeforeColon(bytes: Buffer, at: number): boolean {
  let next = at + 1;
  while (bytes[next]! <= SPACE) next++;
  return bytes[next] === COLON;
}

function readEntry(name: string, value: unknown, start: number): StoredEntry {
  const subject = `tensor ${describe(name)}`;
  const { dtype, shape, data_offsets: offsets } = isPlainObject(value) ? value : {};
  if (typeof dtype !== "string" || !Object.hasOwn(VALUE_BYTES, dtype))
    throw invalid(`${subject} of a type such as F32, F16 or BF16`, describe(dtype));
  const type = dtype as StoredType;
  if (!isSizes(shape)) throw invalid(`${subject} with a shape (list of sizes)`, describe(shape));
  if (!isSizes(offsets) || offsets.length !== 2 || offsets[0]! > offsets[1]!)
    throw invalid(`${subject} with a first and a last byte`, describe(offsets));
  const [first, last] = offsets as [number, number];
  const bytes = shape.reduce((product, side) => product * side, VALUE_BYTES[type]);
  // beyond 2^53 products are inexact, and no file has as many bytes
  if (bytes !== last - first) throw invalid(`${subject} with ${bytes} bytes for its shape`, `${last - first}`);
  return { dtype: type, shape, from: start + first, to: start + last };
}

const isSizes = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((side) => Number.isSafeInteger(side) && side >= 0);

function readMetadata(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  if (isPlainObject(value) && Object.values(value).every((text) => typeof text === "string"))
    return value as Record<string, string>;
  throw invalid("metadata that is an object of texts", describe(value));
}

const invalid = (expected: string, received: string, cause?: unknown): LatentkitError =>
  fault(`expected ${expected}, received ${received}`, cause);

const fault = (reason: string, cause?: unknown): LatentkitError =>
  new LatentkitError("safetensors.invalid", `Safetensors: ${reason}.`, {}, { cause });
