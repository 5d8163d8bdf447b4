import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Tensor } from "latentkit";

/** Same shape and the same bits; any NaN equals any other. */
export function assertSameBits(actual: unknown, expected: Tensor, what = "tensor"): void {
  if (!(actual instanceof Tensor)) assert.fail(`${what}: not a tensor`);
  assert.deepEqual([...actual.shape], [...expected.shape], `${what}: shape`);
  for (let i = 0; i < expected.size; i++) {
    const a: number = actual.data[i]!;
    const b: number = expected.data[i]!;
    if (!Object.is(a, b)) assert.fail(`${what}: element ${i} is ${a}, not ${b}`);
  }
}

/** Same shape, and every element within `tolerance`, or equal, or both NaN. */
export function assertClose(
  actual: unknown,
  expected: Tensor,
  tolerance: (x: number) => number,
  what = "tensor",
): void {
  if (!(actual instanceof Tensor)) assert.fail(`${what}: not a tensor`);
  assert.deepEqual([...actual.shape], [...expected.shape], `${what}: shape`);
  for (let i = 0; i < expected.size; i++) {
    const a: number = actual.data[i]!;
    const b: number = expected.data[i]!;
    if (Object.is(a, b) || Math.abs(a - b) <= tolerance(b)) continue;
    assert.fail(`${what}: element ${i} is ${a}, not ${b}`);
  }
}

/** SHA-256 of the little-endian bytes. */
export const sha256 = (data: Float32Array): string =>
  createHash("sha256")
    .update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
    .digest("hex");
