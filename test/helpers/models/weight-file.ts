import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import type { WeightFile } from "#src/host/checkpoint/weights/stored.js";

/** Values of a tensor as a file holds them. */
export interface RawTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** A float32 tensor of 1, 2, 3 … or of given values. */
export function f32(shape: readonly number[], values?: readonly number[]): RawTensor {
  const size = shape.reduce((product, side) => product * side, 1);
  const data = Float32Array.from(values ?? Array.from({ length: size }, (_, i) => i + 1));
  return { dtype: "F32", shape, bytes: new Uint8Array(data.buffer) };
}

/** A tensor of 16-bit words. */
export const words = (dtype: "F16" | "BF16", shape: readonly number[], values: readonly number[]): RawTensor => ({
  dtype,
  shape,
  bytes: new Uint8Array(Uint16Array.from(values).buffer),
});

/** Opens a model file under its own name. */
export const weightFile = (path: string): Promise<WeightFile> => openModelFile({ name: basename(path), path });

/** Writes a .safetensors file, its values right after a header of any length. */
export function writeWeights(
  path: string,
  tensors: Readonly<Record<string, RawTensor>>,
  metadata?: Readonly<Record<string, string>>,
): string {
  let end = 0;
  const header: Record<string, unknown> = metadata === undefined ? {} : { __metadata__: metadata };
  for (const [key, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[key] = { dtype, shape, data_offsets: [end, end + bytes.length] };
    end += bytes.length;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(path, Buffer.concat([length, text, ...Object.values(tensors).map(({ bytes }) => bytes)]));
  return path;
}
