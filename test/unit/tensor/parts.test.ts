import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { cycled, flipped, joined, narrowed, transposed } from "#src/tensor/parts.js";
import { roundHalfEven } from "#src/tensor/rounding.js";
import { refuses } from "../../helpers/errors.js";
import { assertSameBits } from "../../helpers/tensor/bits.js";

const counted = (shape: number[]): Tensor =>
  Tensor.from(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => i),
    shape,
  );
const x = counted([2, 3, 4]);
const of = (values: number[], shape: number[]) => Tensor.from(values, shape);

describe("parts of tensors", () => {
  it("narrows any axis, and returns the tensor itself for all of it", () => {
    assertSameBits(narrowed(x, 0, 1, 1), of([12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23], [1, 3, 4]));
    assertSameBits(narrowed(x, -2, 1, 1), of([4, 5, 6, 7, 16, 17, 18, 19], [2, 1, 4]));
    assertSameBits(narrowed(x, 2, 3, 1), of([3, 7, 11, 15, 19, 23], [2, 3, 1]));
    assertSameBits(narrowed(x, 2, 4, 0), Tensor.zeros([2, 3, 0]));
    assert.equal(narrowed(x, 1, 0, 3), x);
  });

  it("refuses parts and axes that a tensor does not have", async () => {
    await refuses(() => narrowed(x, 1, 2, 2), "tensor.bad-shape", /axis 1: expected elements in 0 to 3/);
    await refuses(() => narrowed(x, 1, -1, 2), "tensor.bad-shape");
    await refuses(() => narrowed(x, 3, 0, 1), "tensor.bad-shape", /an axis 3/);
  });

  it("joins along any axis what was narrowed", async () => {
    for (const axis of [0, 1, 2, -1]) {
      const length = x.shape.at(axis)!;
      assertSameBits(joined([narrowed(x, axis, 0, 1), narrowed(x, axis, 1, length - 1)], axis), x);
    }
    await refuses(() => joined([x, counted([2, 3, 5])], 0), "tensor.bad-shape", /equal on all other axes/);
    await refuses(() => joined([x, counted([2, 3])], 0), "tensor.bad-shape");
  });

  it("repeats and cuts a batch", async () => {
    const y = counted([2, 2]);
    assertSameBits(cycled(y, 5), of([0, 1, 2, 3, 0, 1, 2, 3, 0, 1], [5, 2]));
    assertSameBits(cycled(y, 1), of([0, 1], [1, 2]));
    await refuses(() => cycled(Tensor.zeros([0, 2]), 1), "tensor.bad-shape", /at least one item/);
  });

  it("reverses an axis and exchanges the last two", () => {
    const y = counted([1, 2, 3]);
    assertSameBits(flipped(y, -1), of([2, 1, 0, 5, 4, 3], [1, 2, 3]));
    assertSameBits(flipped(y, 1), of([3, 4, 5, 0, 1, 2], [1, 2, 3]));
    assertSameBits(transposed(y), of([0, 3, 1, 4, 2, 5], [1, 3, 2]));
    assertSameBits(transposed(transposed(x)), x);
    assertSameBits(transposed(Tensor.zeros([2, 0, 3])), Tensor.zeros([2, 3, 0]));
  });

  it("rounds halves to the even number", () => {
    const values = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 3, 7.3, -7.6];
    assert.deepEqual(values.map(roundHalfEven), [0, 2, 2, -0, -2, 0, 3, 7, -8]);
  });
});
