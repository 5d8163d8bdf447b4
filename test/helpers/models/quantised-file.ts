import { readFileSync } from "node:fs";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { loadNative } from "#src/native/load.js";
import { type GgufTensor, textValue, writeGguf } from "./gguf-file.js";
import { type RawTensor, writeWeights } from "./weight-file.js";

/** Numbers of the types in GGUF files that hold single values. */
const SINGLE: Readonly<Record<string, number>> = { F32: 0, F16: 1, BF16: 30 };
const [Q4_0, Q8_0] = [2, 8];
const GROUP = 32;

interface Quantised {
  /** Type of matrices whose rows are a multiple of 32, by their key. */
  readonly type: (key: string) => "Q4_0" | "Q8_0" | undefined;
  readonly architecture: string;
  /** Name of a weight in the GGUF file; undefined leaves it out of both. */
  readonly rename?: (key: string) => string | undefined;
}

/** Writes a .safetensors file's weights as a GGUF file at `gguf`, and the values that this has as a .safetensors file at `expanded`. */
export function writeQuantised(
  source: string,
  { gguf, expanded }: { readonly gguf: string; readonly expanded: string },
  { type, architecture, rename = (key) => key }: Quantised,
): void {
  const { tensors } = readSafetensors(readFileSync(source));
  const packed: Record<string, GgufTensor> = {};
  const plain: Record<string, RawTensor> = {};
  for (const [key, tensor] of tensors) {
    const { dtype, shape, bytes } = tensor;
    const name = rename(key);
    if (name === undefined) continue;
    const wanted = shape.length === 2 && shape[1]! % GROUP === 0 ? type(key) : undefined;
    if (wanted === undefined) {
      packed[name] = { type: SINGLE[dtype]!, shape, bytes };
      plain[key] = { dtype, shape, bytes };
      continue;
    }
    const { data } = toTensor(tensor);
    const blocks = wanted === "Q8_0" ? eightBits(data) : fourBits(data);
    const values = new Float32Array(data.length);
    const id = wanted === "Q8_0" ? Q8_0 : Q4_0;
    loadNative().unpackBlocks(values, blocks, id);
    packed[name] = { type: id, shape, bytes: blocks };
    plain[key] = { dtype: "F32", shape, bytes: new Uint8Array(values.buffer) };
  }
  writeGguf(gguf, { pairs: { "general.architecture": textValue(architecture) }, tensors: packed });
  writeWeights(expanded, plain);
}

function eightBits(data: Float32Array): Uint8Array {
  return inBlocks(data, 34, (values, bytes, view) => {
    const scale = scaleOf(values, 127, view);
    for (const [i, value] of values.entries()) bytes[2 + i] = scale === 0 ? 0 : Math.round(value / scale);
  });
}

function fourBits(data: Float32Array): Uint8Array {
  return inBlocks(data, 18, (values, bytes, view) => {
    const scale = scaleOf(values, 7, view);
    const code = (value: number): number =>
      scale === 0 ? 8 : Math.min(15, Math.max(0, Math.round(value / scale) + 8));
    for (let i = 0; i < 16; i++) bytes[2 + i] = code(values[i]!) | (code(values[i + 16]!) << 4);
  });
}

type WriteBlock = (values: Float32Array, bytes: Uint8Array, view: DataView) => void;

function inBlocks(data: Float32Array, size: number, write: WriteBlock): Uint8Array {
  const all = new Uint8Array((data.length / GROUP) * size);
  for (let block = 0; block < data.length / GROUP; block++) {
    const bytes = all.subarray(block * size, (block + 1) * size);
    const view = new DataView(all.buffer, block * size, size);
    write(data.subarray(block * GROUP, (block + 1) * GROUP), bytes, view);
  }
  return all;
}

/** Writes the scale of a block as a half, a power of two, and returns it. */
function scaleOf(values: Float32Array, most: number, view: DataView): number {
  const largest = values.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  const exponent = largest === 0 ? -14 : Math.max(-14, Math.ceil(Math.log2(largest / most)));
  view.setUint16(0, (exponent + 15) << 10, true);
  return 2 ** exponent;
}
