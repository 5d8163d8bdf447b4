import { LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import { headerLength, LENGTH_BYTES, parseHeader, type StoredType } from "./header.js";

/** A tensor as a file holds it; `bytes` is a view of the file. */
export interface StoredTensor {
  readonly dtype: StoredType;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export interface SafetensorsFile {
  readonly metadata: Readonly<Record<string, string>>;
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
  } else {
    throw new LatentkitError("safetensors.invalid", `Safetensors: expected F32, F16 or BF16, received ${dtype}.`);
  }
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
