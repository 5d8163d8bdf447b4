import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";
import { seededInts } from "../seeded.js";

/** Values in 0 … 1 with 3 decimals, repeatable. */
export function noisy(shape: readonly number[], seed = 1): Tensor {
  const next = seededInts(seed);
  const size = shape.reduce((a, b) => a * b, 1);
  return Tensor.from(
    Array.from({ length: size }, () => next(1001) / 1000),
    shape,
  );
}

/** The first result of a node. */
export async function resultOf(key: string, inputs: Readonly<Record<string, unknown>>): Promise<Tensor> {
  const { result } = await invokeNode(key, inputs);
  assert.ok(result[0] instanceof Tensor);
  return result[0];
}

/** Value of pixel (x, y) of the first picture [B, H, W, C]. */
export const valueAt = ({ data, shape }: Tensor, x: number, y: number, channel = 0): number =>
  data[(y * shape[2]! + x) * shape[3]! + channel]!;
