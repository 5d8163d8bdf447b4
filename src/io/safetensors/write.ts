import type { Tensor } from "../../tensor/tensor.js";
import { LENGTH_BYTES } from "./header.js";

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
