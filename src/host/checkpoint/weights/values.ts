import type { FileHandle } from "node:fs/promises";
import { basename } from "node:path";
import { describe, LatentkitError } from "../../../base/errors.js";
import { openRegular } from "../../../io/regular-file.js";
import { type StoredType, toTensor } from "../../../io/safetensors.js";
import { isPacked, placedWeights, quotedName, readAt, readError, type StoredWeight, type WeightMap } from "./stored.js";

/** Larger weights are read only by the runtime. */
const MOST_BYTES = 2 ** 20;

/** Reads the values of a weight of few numbers. */
export type ReadValues = (weight: StoredWeight) => Promise<ArrayLike<number>>;

/**
 * Reads the values of a small weight of any type, without its factor. Throws model.invalid for more than 1 MiB and a file
 * that has become shorter, file.read-failed if it cannot be read.
 */
export async function readValues(weight: StoredWeight): Promise<Float64Array> {
  const { dtype, shape } = weight;
  const bytes = await readStored(weight);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  switch (dtype) {
    case "F32":
    case "F16":
    case "BF16":
      return Float64Array.from(toTensor({ dtype, shape, bytes }).data);
    case "F8_E4M3":
      return Float64Array.from(bytes, valueOfE4m3);
    case "F8_E5M2": {
      // the upper half of a 16-bit float
      const halves = new Uint8Array(2 * bytes.length);
      for (const [i, byte] of bytes.entries()) halves[2 * i + 1] = byte;
      return Float64Array.from(toTensor({ dtype: "F16", shape, bytes: halves }).data);
    }
    default: {
      if (isPacked(dtype)) throw invalid(weight, "single values", dtype);
      const [size, valueAt] = OTHER_TYPES[dtype];
      return Float64Array.from({ length: bytes.length / size }, (_, i) => valueAt(view, i * size));
    }
  }
}

type ValueAt = (view: DataView, at: number) => number;

/** Bytes of a value and how it is read, by type. Whole numbers of 64 bits are rounded as a double rounds them. */
const OTHER_TYPES: Readonly<
  Record<Exclude<StoredType, "F32" | "F16" | "BF16" | "F8_E4M3" | "F8_E5M2">, readonly [size: number, at: ValueAt]>
> = {
  BOOL: [1, (view, at) => view.getUint8(at)],
  U8: [1, (view, at) => view.getUint8(at)],
  I8: [1, (view, at) => view.getInt8(at)],
  U16: [2, (view, at) => view.getUint16(at, true)],
  I16: [2, (view, at) => view.getInt16(at, true)],
  U32: [4, (view, at) => view.getUint32(at, true)],
  I32: [4, (view, at) => view.getInt32(at, true)],
  U64: [8, (view, at) => Number(view.getBigUint64(at, true))],
  I64: [8, (view, at) => Number(view.getBigInt64(at, true))],
  F64: [8, (view, at) => view.getFloat64(at, true)],
};

/** Bytes of a small weight as the file has them. Throws as readValues. */
export async function readStored(weight: StoredWeight): Promise<Uint8Array> {
  const { file, from, to } = weight;
  if (to - from > MOST_BYTES) throw invalid(weight, `at most ${MOST_BYTES} bytes`, `${to - from}`);
  let handle: FileHandle | undefined;
  try {
    handle = await openRegular(file);
    const bytes = await readAt(handle, from, to - from);
    if (bytes.length < to - from) throw invalid(weight, `${to} bytes`, `${from + bytes.length}`);
    return bytes;
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const message = `Model ${quotedName(basename(file))} cannot be read: ${code}.`;
    throw new LatentkitError("file.read-failed", message, {}, { cause: error });
  } finally {
    await handle?.close();
  }
}

/** The value of an 8-bit float: 1 bit of sign, 4 of exponent, 3 of fraction; all ones are NaN, and there is no infinity. */
function valueOfE4m3(byte: number): number {
  const sign = byte & 0x80 ? -1 : 1;
  const [exponent, fraction] = [(byte >> 3) & 15, byte & 7];
  if (exponent === 15 && fraction === 7) return Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -9 : sign * (1 + fraction / 8) * 2 ** (exponent - 7);
}

function invalid({ file, key }: StoredWeight, expected: string, received: string): LatentkitError {
  const message = `Model ${quotedName(basename(file))}: expected tensor ${describe(key)} of ${expected}, received ${received}.`;
  return new LatentkitError("model.invalid", message, { expected, received });
}

/** Bytes that are looked at before the event loop turns. */
const PART_BYTES = 2 ** 20;
const MAGNITUDE = 0x7fff;
/** 65,280, the largest bfloat16 in the range of float16. */
const LARGEST = 0x477f;

// decisions: BF16 and 8-bit weights become F16 on a GPU
/** Weights of a file that can be held as F16, though they are stored in another type. */
export class HalfWeights {
  #found: Promise<ReadonlySet<StoredWeight>> | undefined;
  readonly #weights: WeightMap;

  constructor(weights: WeightMap) {
    this.#weights = weights;
  }

  /**
   * Those in 8 bits, whose values F16 has, and those in BF16 whose values are in F16's range; numbers below 2^-24 become 0.
   * Reads weights in BF16 once. Rejects with file.read-failed.
   */
  find(): Promise<ReadonlySet<StoredWeight>> {
    this.#found ??= this.#find();
    return this.#found;
  }

  async #find(): Promise<ReadonlySet<StoredWeight>> {
    const found = new Set<StoredWeight>();
    const files = new Map<string, StoredWeight[]>();
    for (const weight of placedWeights(this.#weights)) {
      if (weight.dtype.startsWith("F8")) found.add(weight);
      else if (weight.dtype === "BF16") files.set(weight.file, [...(files.get(weight.file) ?? []), weight]);
    }
    for (const [file, weights] of files) {
      let handle: FileHandle | undefined;
      try {
        handle = await openRegular(file);
        for (const weight of weights) if (await isWithinFloat16(handle, weight)) found.add(weight);
      } catch (error) {
        throw readError(basename(file), error);
      } finally {
        await handle?.close();
      }
    }
    return found;
  }
}

/** Whether all of a file's numbers in BF16 are in the range of F16. A file that has become shorter lacks those at its end. */
async function isWithinFloat16(handle: FileHandle, { from, to }: StoredWeight): Promise<boolean> {
  const bytes = new Uint8Array(Math.min(PART_BYTES, to - from));
  for (let position = from; position < to; ) {
    const { bytesRead } = await handle.read(bytes, 0, Math.min(bytes.length, to - position), position);
    if (bytesRead < 2) return false;
    const count = bytesRead >> 1;
    const numbers = new Uint16Array(bytes.buffer, 0, count);
    for (let i = 0; i < count; i++) if ((numbers[i]! & MAGNITUDE) > LARGEST) return false;
    position += 2 * count;
  }
  return true;
}
