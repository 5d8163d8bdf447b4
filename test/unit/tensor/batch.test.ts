import assert from "node:assert/strict";
import { randn, Tensor } from "latentkit";
import { concatBatch, sliceBatch, stdOfItems } from "#src/tensor/batch.js";
import { std } from "#src/tensor/ops.js";

describe("tensor/batch", () => {
  const parts = [2, 0, 1, 3].map((items, at) => randn([items, 3, 5], { seed: BigInt(at + 1) }));

  it("concatBatch and sliceBatch are inverse, as a copy and as shared values", () => {
    const whole = concatBatch(parts);
    assert.deepEqual(whole.shape, [6, 3, 5]);
    assert.deepEqual(
      [...whole.data],
      parts.flatMap(({ data }) => [...data]),
    );
    let from = 0;
    for (const part of parts) {
      const slice = sliceBatch(whole, from, part.shape[0]!);
      assert.deepEqual([slice.shape, slice.data], [part.shape, part.data]);
      assert.equal(slice.data.buffer, whole.data.buffer);
      from += part.shape[0]!;
    }
    const [alone] = parts;
    assert.notEqual(concatBatch([alone!]).data, alone!.data);
    assert.deepEqual(concatBatch([alone!, alone!]).data, Float32Array.from([...alone!.data, ...alone!.data]));
  });

  it("sliceBatch of no items, and of a batch without any, is empty", () => {
    assert.deepEqual(sliceBatch(parts[0]!, 2, 0).shape, [0, 3, 5]);
    assert.deepEqual(sliceBatch(parts[1]!, 0, 0).shape, [0, 3, 5]);
  });

  it("stdOfItems is std of each item", () => {
    const x = randn([4, 2, 33, 70], { seed: 7n });
    const expected = Array.from({ length: 4 }, (_, item) => std(sliceBatch(x, item, 1)));
    assert.deepEqual(stdOfItems(x), expected);
    assert.ok(new Set(expected).size === 4 && expected.every((value) => Math.abs(value - 1) < 0.1));
    assert.deepEqual(stdOfItems(Tensor.from([1, 3, 2, 2], [2, 2])), [Math.fround(Math.SQRT2), 0]);
    assert.deepEqual(stdOfItems(Tensor.from([1, 2], [2])), [Number.NaN, Number.NaN]);
  });

  it("shapes and items that do not fit are refused", () => {
    const refuses = (call: () => unknown, message: RegExp, code = "tensor.bad-shape"): void => {
      assert.throws(call, { code, message });
    };
    const x = Tensor.zeros([2, 3, 5]);
    refuses(() => concatBatch([]), /concatBatch: expected at least one tensor/, "value.invalid");
    refuses(
      () => concatBatch([x, Tensor.zeros([2, 3, 4])]),
      /expected items of shape \[3, 5\], received .*\[2, 3, 4\]/,
    );
    refuses(() => concatBatch([x, Tensor.zeros([2, 3])]), /expected items of shape \[3, 5\], received .*\[2, 3\]/);
    refuses(() => concatBatch([Tensor.zeros([])]), /concatBatch: expected a batch, received shape \[\]/);
    for (const [from, count] of [
      [1, 2],
      [-1, 1],
      [0, -1],
      [0.5, 1],
      [0, Number.NaN],
      [3, 0],
    ] as const)
      refuses(() => sliceBatch(x, from, count), /sliceBatch: expected items within the batch of 2, received/);
    refuses(() => sliceBatch(Tensor.zeros([]), 0, 0), /sliceBatch: expected a batch/);
    refuses(() => stdOfItems(Tensor.zeros([2 ** 30, 0])), /stdOfItems: expected a batch of values/);
  });
});
