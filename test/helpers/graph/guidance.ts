import assert from "node:assert/strict";
import { invokeNode, type Model, Tensor } from "latentkit";
import type { GuidanceStep } from "#src/host/types.js";
import { weightedSum } from "#src/tensor/ops.js";
import { patchable } from "./file-host.js";

/** Latents [2, 2, 3, 3] that differ in every value. */
export const wave = (from: number): Tensor =>
  Tensor.from(
    Float32Array.from({ length: 36 }, (_, i) => Math.sin(i * 1.7 + from)),
    [2, 2, 3, 3],
  );

/** One noise level with sides that differ. */
export const step = (others: Partial<GuidanceStep> = {}): GuidanceStep => ({
  x: wave(1),
  sigma: 2,
  cond: wave(2),
  uncond: wave(3),
  cfg: 7,
  predict: () => assert.fail("no other estimate is needed"),
  sum: (terms) => weightedSum(terms),
  ...others,
});

/** The guidance that a node gives to a model, which stays as it is; returns the model too. */
export async function guidanceOf(key: string, inputs: Readonly<Record<string, unknown>>) {
  const own = await patchable();
  const model = (await invokeNode(key, { model: own, ...inputs })).result[0] as Model;
  assert.equal((own as Model).guidance, undefined);
  assert.equal(model.sampling, own.sampling);
  return { model, guidance: model.guidance! };
}

/** Values of an item of a batch. */
export const itemOf = (x: Tensor, item: number): number[] => [...x.data.slice(item * 18, item * 18 + 18)];

/** Compares item by item with a formula over plain lists, to float32's precision. */
export function assertItems(actual: Tensor, expected: (item: number) => readonly number[]): void {
  for (const item of [0, 1]) {
    const values = expected(item);
    for (const [i, value] of itemOf(actual, item).entries()) {
      const difference = Math.abs(value - values[i]!);
      assert.ok(
        difference <= 2e-6 * Math.max(1, Math.abs(values[i]!)),
        `item ${item}, ${i}: ${value}, not ${values[i]}`,
      );
    }
  }
}

export const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
