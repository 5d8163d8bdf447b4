import { endianness } from "node:os";
import { pack, unpack } from "./structure.js";

/*
 * One entry: 8 bytes magic, u32 version, u32 length of the header, the header as JSON, zeros up to a multiple of 64,
 * the tensors' float32 one after another, SHA-256 of all that. Little-endian.
 */
const MAGIC = Buffer.from("\x89LKC\r\n\x1a\n", "latin1");
const VERSION = 1;
const FIXED = 16;
const ALIGNMENT = 64;
// decision 192
export const HASH_BYTES = 32;
export const MIN_ENTRY_BYTES = ALIGNMENT + HASH_BYTES;
/** Limit for text and structure of a result, without tensors. */
const MAX_HEADER_BYTES = 4 * 2 ** 20;

/** Lists of values of a node's outputs. */
export type Outputs = readonly (readonly unknown[])[];

/** Encodes an entry without its hash, in parts so that tensors are not copied. Undefined where outputs cannot be stored. */
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
 * and which must begin at a multiple of four of its buffer. Undefined where the bytes are no entry of this signature.
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
    // a bad entry is no entry
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
