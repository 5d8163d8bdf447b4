import assert from "node:assert/strict";
import { join } from "node:path";
import type { Tensor } from "latentkit";
import { changesOf } from "#src/host/checkpoint/lora/changes.js";
import type { LoraTarget } from "#src/host/checkpoint/lora/places.js";
import { type LoraFile, readLora } from "#src/host/checkpoint/lora/recognise.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { unetPlaces } from "#src/host/checkpoint/unet/lora.js";
import { networkOf, type WeightChange } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { toTensor } from "#src/io/safetensors.js";
import { seededInts } from "../seeded.js";
import { graphSession } from "./session.js";
import { type RawTensor, weightFile, writeWeights } from "./weight-file.js";

/** Tensors of one file by key. */
export type RawTensors = Readonly<Record<string, RawTensor>>;

/** Random values in -1…1 with all bits of their type in use. */
export function randomTensor(seed: number, shape: readonly number[], dtype: "F32" | "F16" | "BF16" = "F32"): RawTensor {
  const random = seededInts(seed);
  const size = sizeOf(shape);
  const values = Float32Array.from({ length: size }, () => random(2 ** 24) / 2 ** 23 - 1);
  const bytes = {
    F32: () => values,
    // sign, exponent from 2^-7 to 2^-1, fraction
    F16: () => Uint16Array.from(values, (value) => (value < 0 ? 0x8000 : 0) + 8 * 1024 + random(7 * 1024)),
    // the upper half of a float32
    BF16: () => Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16),
  }[dtype]();
  return { dtype, shape, bytes: new Uint8Array(bytes.buffer) };
}

/** Values of a tensor that randomTensor or weight-file.ts has made. */
export const valuesOf = ({ dtype, shape, bytes }: RawTensor): number[] =>
  Array.from(toTensor({ dtype: dtype as "F32", shape, bytes }).data);

export const sizeOf = (shape: readonly number[]): number => shape.reduce((product, side) => product * side, 1);

/** Equal to values computed in doubles, but for float32's rounding relative to the largest. */
export function assertNear({ data }: Tensor, expected: readonly number[]): void {
  assert.equal(data.length, expected.length);
  const tolerance = 1e-6 * expected.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  for (const [i, value] of expected.entries())
    assert.ok(Math.abs(data[i]! - value) <= tolerance, `element ${i} is ${data[i]}, not ${value}`);
}

/** A LoRA file with these tensors. */
export async function loraOf(folder: string, tensors: RawTensors, name = "lora"): Promise<LoraFile> {
  return readLora(await weightFile(writeWeights(join(folder, `${name}.safetensors`), tensors)), readValues);
}

/** Weights without a file, whose names and shapes alone count. */
export const weightsOf = (shapes: Readonly<Record<string, readonly number[]>>): WeightMap =>
  new Map(
    Object.entries(shapes).map(([key, shape]) => [
      key,
      { file: "model", key, dtype: "F32", shape, from: 0, to: 4 * sizeOf(shape) },
    ]),
  );

/** A network's weights after LoRAs, in order, as ONNX Runtime computes them. */
export async function weightsAfter(
  folder: string,
  weights: RawTensors,
  loras: readonly { readonly tensors: RawTensors; readonly strength: number }[],
  { target = unet, overridable = true }: { target?: (weights: WeightMap) => LoraTarget; overridable?: boolean } = {},
): Promise<Record<string, Tensor>> {
  const file = await weightFile(writeWeights(join(folder, "model.safetensors"), weights));
  const changes = new Map<string, WeightChange[]>();
  for (const [index, { tensors, strength }] of loras.entries()) {
    const lora = await loraOf(folder, tensors, `lora-${index}`);
    for (const [key, ofKey] of changesOf(lora, target(file.weights), strength))
      changes.set(key, [...(changes.get(key) ?? []), ...ofKey]);
  }
  const graph = new OnnxGraph("weights");
  const network = networkOf(graph, file.weights, { changes });
  for (const [key, { shape }] of file.weights) graph.output(network.weight(key, shape), key, "float", shape);
  const session = await graphSession(graph.encode({ overridable }));
  try {
    return await session.run({});
  } finally {
    await session.release();
  }
}

const unet = (weights: WeightMap): LoraTarget => ({ places: unetPlaces, weights });
