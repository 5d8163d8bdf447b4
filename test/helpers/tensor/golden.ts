import { join } from "node:path";
import { Tensor } from "latentkit";
import { root } from "../folders.js";
import { goldenBytes, goldenText } from "../golden-file.js";

const folder = join(root, "test/golden");

/** A tensor of a .safetensors file: raw typed values and their shape. */
export interface StoredTensor {
  dtype: string;
  shape: number[];
  data: Float32Array | Float64Array | Uint8Array | Uint32Array | Uint16Array;
}

export interface Golden<Case, Meta = Record<string, unknown>> {
  meta: Meta;
  cases: Case[];
  /** The stored tensor of that name; throws if there is none. */
  raw(name: string): StoredTensor;
  /** The stored tensor as a Tensor (F32, or F16 as float32). */
  tensor(name: string): Tensor;
  has(name: string): boolean;
}

/** Loads test/golden/NAME.json and, if it exists, NAME.safetensors, gzipped or not. */
export function golden<Case = Record<string, unknown>, Meta = Record<string, unknown>>(
  name: string,
): Golden<Case, Meta> {
  const { meta, cases } = goldenJson<{ meta: Meta; cases: Case[] }>(name);
  const tensors = readSafetensors(name);
  const raw = (key: string): StoredTensor => {
    const tensor = tensors.get(key);
    if (tensor === undefined) throw new Error(`golden ${name}: no tensor ${key}`);
    return tensor;
  };
  return {
    meta,
    cases,
    raw,
    has: (key) => tensors.has(key),
    tensor: (key) => {
      const { dtype, data, shape } = raw(key);
      if (data instanceof Uint16Array) return Tensor.from(Array.from(data, fromHalf), shape);
      if (!(data instanceof Float32Array)) throw new Error(`golden ${name}: ${key} is ${dtype}, not F32`);
      return Tensor.from(data.slice(), shape);
    },
  };
}

export function goldenJson<T>(name: string): T {
  return JSON.parse(goldenText(join(folder, `${name}.json`))) as T;
}

function readSafetensors(name: string): Map<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  const bytes = goldenBytes(join(folder, `${name}.safetensors`));
  if (bytes === undefined) return tensors;
  const headerLength = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerLength)) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  for (const [key, entry] of Object.entries(header)) {
    if (key === "__metadata__") continue;
    const [from, to] = entry.data_offsets;
    const copy = new Uint8Array(bytes.subarray(8 + headerLength + from, 8 + headerLength + to));
    const View = { F32: Float32Array, F64: Float64Array, U8: Uint8Array, U32: Uint32Array, F16: Uint16Array }[
      entry.dtype
    ];
    if (View === undefined) throw new Error(`golden ${name}: ${key} has dtype ${entry.dtype}`);
    tensors.set(key, { dtype: entry.dtype, shape: entry.shape, data: new View(copy.buffer) });
  }
  return tensors;
}

/** "NaN", "Infinity" and "-Infinity" of the golden files to numbers. */
export function nonFinite(value: unknown): number {
  if (typeof value === "number") return value;
  if (value === "NaN") return Number.NaN;
  if (value === "Infinity") return Number.POSITIVE_INFINITY;
  if (value === "-Infinity") return Number.NEGATIVE_INFINITY;
  throw new Error(`not a number: ${String(value)}`);
}

/** The value of 16 bits as IEEE 754 half precision. */
function fromHalf(bits: number): number {
  const [sign, exponent, fraction] = [bits >> 15 === 0 ? 1 : -1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}
