import { endianness } from "node:os";
import { HOSTILE_KEYS, isPlainObject, keysInOrder, NumberLiteral, rememberOrder } from "../../io/json/lossless.js";
import { elementCount, Tensor } from "../../tensor/tensor.js";

/*
 * One entry: 8 bytes magic, u32 version, u32 length of the header, the header as JSON, zeros up to a multiple of 64,
 * the tensors' float32 one after another, SHA-256 of all that. Little-endian.
 */
const MAGIC = Buffer.from("\x89LKC\r\n\x1a\n", "latin1");
const VERSION = 1;
const FIXED = 16;
const ALIGNMENT = 64;
// decisions: Entries are hashed and not synced
export const HASH_BYTES = 32;
export const MIN_ENTRY_BYTES = ALIGNMENT + HASH_BYTES;
/** Limit for text and structure of a result, without tensors. */
const MAX_HEADER_BYTES = 4 * 2 ** 20;

/** Lists of values of a node's outputs. */
export type Outputs = readonly (readonly unknown[])[];

/** Encodes an entry without its hash, in parts so that tensors are not copied. Undefined if outputs cannot be stored. */
export function encodeEntry(signature: string, outputs: Outputs): Uint8Array[] | undefined {
  const packed = pack(outputs);
  if (packed === undefined) return undefined;
  const { json, tensors } = packed;
  const header = Buffer.from(JSON.stringify({ signature, sizes: tensors.map(({ length }) => length), outputs: json }));
  if (header.length > MAX_HEADER_BYTES) return undefined;
  const head = Buffer.alloc(dataStart(header.length));
  MAGIC.copy(head);
  head.writeUInt32LE(VERSION, 8);
  head.writeUInt32LE(header.length, 12);
  header.copy(head, FIXED);
  return [head, ...tensors.map(littleEndian)];
}

/**
 * Decodes an entry without its hash, which the caller has verified. Tensors are views into `bytes`, which this takes over
 * and which must begin at a multiple of four of its buffer. Undefined if the bytes are not an entry of this signature.
 */
export function decodeEntry(bytes: Uint8Array, signature: string): Outputs | undefined {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.length < ALIGNMENT || !view.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  const length = view.readUInt32LE(12);
  if (view.readUInt32LE(8) !== VERSION || length > MAX_HEADER_BYTES || dataStart(length) > view.length)
    return undefined;
  const header = readHeader(view.toString("utf8", FIXED, FIXED + length));
  if (header?.signature !== signature) return undefined;
  const tensors = sliceTensors(view, dataStart(length), header.sizes);
  const unpacked = tensors === undefined ? undefined : unpack({ json: header.outputs, tensors });
  const outputs = unpacked?.value;
  return Array.isArray(outputs) && outputs.every(Array.isArray) ? outputs : undefined;
}

const dataStart = (header: number): number => Math.ceil((FIXED + header) / ALIGNMENT) * ALIGNMENT;

function readHeader(text: string): Record<string, unknown> | undefined {
  try {
    const header: unknown = JSON.parse(text);
    return typeof header === "object" && header !== null ? (header as Record<string, unknown>) : undefined;
  } catch {
    // a bad entry counts as absent
    return undefined;
  }
}

/** Views of the data of each tensor; sizes must add up to the length of the data. */
function sliceTensors(view: Buffer, start: number, sizes: unknown): Float32Array[] | undefined {
  if (!Array.isArray(sizes)) return undefined;
  const tensors: Float32Array[] = [];
  let at = start;
  for (const size of sizes as unknown[]) {
    if (typeof size !== "number" || !Number.isInteger(size) || size < 0 || size > (view.length - at) / 4)
      return undefined;
    tensors.push(new Float32Array(view.buffer, view.byteOffset + at, size));
    at += size * 4;
  }
  if (at !== view.length) return undefined;
  if (endianness() === "BE") view.subarray(start).swap32();
  return tensors;
}

function littleEndian(data: Float32Array): Uint8Array {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return endianness() === "BE" ? Buffer.from(bytes).swap32() : bytes;
}

/** Limits of depth and number of values; results beyond them are neither stored nor read. */
const MAX_DEPTH = 32;
const MAX_VALUES = 100_000;
const MAX_AXES = 16;
const MAX_DIGITS = 400;

const INTEGER = /^-?\d+$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** Numbers that JSON lacks. */
const ODD_NUMBERS: ReadonlyMap<string, number> = new Map([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["-0", -0],
]);

/** A value as JSON, with the data of its tensors apart. */
interface Packed {
  readonly json: unknown;
  readonly tensors: readonly Float32Array[];
}

/** Thrown inside this file for a value that cannot be packed, or for invalid packed data. */
class Unfit extends Error {}

/**
 * Packs a value. Scalars of JSON stay as they are, any other value becomes a list that begins with its kind: ["list", …], ["object", key,
 * value, …], ["integer", "5"] (a bigint), ["literal", "7.0"], ["number", "NaN"], ["nothing"], ["tensor", index, …shape].
 * Undefined if a part is anything else: a model, a function, an instance of a class.
 *
 * @internal
 */
export function pack(value: unknown): Packed | undefined {
  const tensors: Float32Array[] = [];
  const indices = new Map<Float32Array, number>();
  let left = MAX_VALUES;

  const packTensor = ({ data, shape }: Tensor): unknown => {
    if (data.length !== elementCount(shape) || shape.length > MAX_AXES) throw new Unfit();
    const index = indices.get(data) ?? tensors.push(data) - 1;
    indices.set(data, index);
    return ["tensor", index, ...shape];
  };
  const packOne = (item: unknown, depth: number): unknown => {
    if (depth > MAX_DEPTH || left-- <= 0) throw new Unfit();
    switch (typeof item) {
      case "string":
      case "boolean":
        return item;
      case "undefined":
        return ["nothing"];
      case "number":
        return Number.isFinite(item) && !Object.is(item, -0)
          ? item
          : ["number", Object.is(item, -0) ? "-0" : `${item}`];
      case "bigint":
        return ["integer", digits(String(item), INTEGER)];
    }
    if (item === null) return null;
    if (item instanceof Tensor) return packTensor(item);
    if (item instanceof NumberLiteral) return ["literal", digits(item.text, NUMBER)];
    if (Array.isArray(item)) return ["list", ...Array.from(item, (part) => packOne(part, depth + 1))];
    if (!isPlainObject(item)) throw new Unfit();
    const keys = keysInOrder(item);
    if (keys.some((key) => HOSTILE_KEYS.has(key))) throw new Unfit();
    return ["object", ...keys.flatMap((key) => [key, packOne(item[key], depth + 1)])];
  };
  return unlessUnfit(() => ({ json: packOne(value, 0), tensors }));
}

/** Unpacks a value of `pack`; undefined for anything else. @internal */
export function unpack({ json, tensors }: Packed): { readonly value: unknown } | undefined {
  let left = MAX_VALUES;

  const unpackTensor = (index: unknown, shape: readonly unknown[]): Tensor => {
    const data = typeof index === "number" ? tensors[index] : undefined;
    if (data === undefined || shape.length > MAX_AXES) throw new Unfit();
    const size = shape.reduce((product: number, side) => product * (isSide(side) ? side : Number.NaN), 1);
    if (size !== data.length) throw new Unfit();
    return Tensor.from(data, shape as number[]);
  };
  const unpackObject = (parts: readonly unknown[], depth: number): Record<string, unknown> => {
    const object: Record<string, unknown> = {};
    const keys: string[] = [];
    for (let i = 0; i < parts.length; i += 2) {
      const key = parts[i];
      if (typeof key !== "string" || HOSTILE_KEYS.has(key) || Object.hasOwn(object, key)) throw new Unfit();
      keys.push(key);
      object[key] = unpackOne(parts[i + 1], depth + 1);
    }
    rememberOrder(object, keys);
    return object;
  };
  const unpackOne = (item: unknown, depth: number): unknown => {
    if (depth > MAX_DEPTH || left-- <= 0) throw new Unfit();
    if (item === null || ["string", "boolean", "number"].includes(typeof item)) return item;
    if (!Array.isArray(item)) throw new Unfit();
    const [kind, ...parts] = item as unknown[];
    if (kind === "list") return parts.map((part) => unpackOne(part, depth + 1));
    if (kind === "object" && parts.length % 2 === 0) return unpackObject(parts, depth);
    if (kind === "tensor") return unpackTensor(parts[0], parts.slice(1));
    if (kind === "nothing") return undefined;
    const [text] = parts;
    if (kind === "integer") return BigInt(digits(text, INTEGER));
    if (kind === "literal") return new NumberLiteral(digits(text, NUMBER));
    const odd = kind === "number" && typeof text === "string" ? ODD_NUMBERS.get(text) : undefined;
    if (odd === undefined) throw new Unfit();
    return odd;
  };
  return unlessUnfit(() => ({ value: unpackOne(json, 0) }));
}

const isSide = (side: unknown): side is number => Number.isSafeInteger(side) && (side as number) >= 0;

/** Checks digits; long numbers would cost quadratic time. */
function digits(text: unknown, pattern: RegExp): string {
  if (typeof text === "string" && text.length <= MAX_DIGITS && pattern.test(text)) return text;
  throw new Unfit();
}

function unlessUnfit<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Unfit) return undefined;
    throw error;
  }
}
