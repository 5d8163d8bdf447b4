import assert from "node:assert/strict";
import { randn, Tensor } from "latentkit";
import { cropped, cycled, joined, mirrored, narrowed, repeated, turned, upsideDown } from "#src/tensor/parts.js";
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

  it("repeats a whole batch, and returns it for once", async () => {
    const y = counted([2, 2]);
    assertSameBits(repeated(y, 2), of([0, 1, 2, 3, 0, 1, 2, 3], [4, 2]));
    assert.equal(repeated(y, 1), y);
    const out = Tensor.zeros([4, 2]);
    assert.equal(repeated(y, 2, out), out);
    assert.equal(joined([y, y], 0, out), out);
    assertSameBits(out, repeated(y, 2));
    await refuses(() => repeated(y, 3, out), "tensor.bad-shape");
    await refuses(() => repeated(y, 2 ** 29), "tensor.too-large");
  });

  it("crops an axis and the one after it, whatever lies around them", () => {
    const y = counted([2, 3, 4, 2]);
    const part = cropped(y, 1, { top: 1, left: 2, height: 2, width: 1 });
    assertSameBits(part, of([12, 13, 20, 21, 36, 37, 44, 45], [2, 2, 1, 2]));
    assertSameBits(cropped(x, -2, { top: 2, left: 0, height: 1, width: 2 }), of([8, 9, 20, 21], [2, 1, 2]));
    const video = randn([2, 3, 5, 7, 9], { seed: 1n });
    const rows = narrowed(narrowed(video, 3, 2, 4), 4, 4, 5);
    assertSameBits(cropped(video, -2, { top: 2, left: 4, height: 4, width: 5 }), rows);
    assertSameBits(cropped(x, 1, { top: 0, left: 1, height: 3, width: 0 }), Tensor.zeros([2, 3, 0]));
    assert.equal(cropped(x, 1, { top: 0, left: 0, height: 3, width: 4 }), x);
  });

  it("refuses a region that reaches outside, or has no whole sides", async () => {
    const whole = { top: 0, left: 0, height: 3, width: 4 };
    for (const wrong of [
      { top: 1 },
      { left: -1 },
      { height: 4 },
      { width: 2 ** 40 },
      { left: 0.5 },
      { top: Number.NaN },
    ])
      await refuses(() => cropped(x, 1, { ...whole, ...wrong }), "tensor.bad-shape", /within 3 rows and 4 columns/);
    await refuses(() => cropped(x, 2, whole), "tensor.bad-shape", /an axis 3/);
  });

  it("turns and mirrors two neighbouring axes", () => {
    const y = counted([1, 2, 3]);
    assertSameBits(mirrored(y, -2), of([2, 1, 0, 5, 4, 3], [1, 2, 3]));
    assertSameBits(upsideDown(y, 1), of([3, 4, 5, 0, 1, 2], [1, 2, 3]));
    assertSameBits(turned(y, -2, 1), of([3, 0, 4, 1, 5, 2], [1, 3, 2]));
    assertSameBits(turned(turned(x, 1, 1), 1, 3), x);
    assertSameBits(turned(turned(x, 1, 1), 1, 1), turned(x, 1, 2));
    assert.equal(turned(x, 1, 0), x);
    const cells = counted([2, 2, 2]);
    assertSameBits(turned(cells, 0, 1), of([4, 5, 0, 1, 6, 7, 2, 3], [2, 2, 2]));
    assertSameBits(turned(Tensor.zeros([2, 0, 3]), 1, 1), Tensor.zeros([2, 3, 0]));
  });

  it("rounds halves to the even number", () => {
    const values = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 3, 7.3, -7.6];
    assert.deepEqual(values.map(roundHalfEven), [0, 2, 2, -0, -2, 0, 3, 7, -8]);
  });
});
