import assert from "node:assert/strict";
import { randn, Tensor } from "latentkit";
import { productOfItems, stdOfItems, sumOfItems, termsOfItems } from "#src/tensor/items.js";
import { std, weightedSum } from "#src/tensor/ops.js";
import { narrowed } from "#src/tensor/parts.js";
import { assertSameBits } from "../../helpers/tensor/bits.js";

describe("items of a batch", () => {
  const wave = (from: number) =>
    Tensor.from(
      Float32Array.from({ length: 48 }, (_, i) => Math.sin(i * 1.7 + from)),
      [3, 1, 4, 4],
    );
  const [a, b] = [wave(0), wave(5)];
  const item = (x: Tensor, at: number) => Tensor.from(x.data.slice(at * 16, at * 16 + 16), [1, 1, 4, 4]);

  it("add up with a coefficient each, as alone", () => {
    const sum = sumOfItems([
      [[1, 2, 3], a],
      [[0.5, 0.25, -1], b],
    ]);
    for (const [at, [p, q]] of [
      [1, 0.5],
      [2, 0.25],
      [3, -1],
    ].entries()) {
      assertSameBits(
        item(sum, at),
        weightedSum([
          [p!, item(a, at)],
          [q!, item(b, at)],
        ]),
      );
    }
    assertSameBits(
      sumOfItems([
        [[2, 2, 2], a],
        [[1, 1, 1], b],
      ]),
      weightedSum([
        [2, a],
        [1, b],
      ]),
    );
  });

  it("are terms to add up: those themselves if items have equal coefficients", () => {
    assert.deepEqual(termsOfItems([[[2, 2, 2], a]]), [[2, a]]);
    const [[one, sum], ...others] = termsOfItems([[[2, 2, 1], a]]) as [[number, Tensor]];
    assert.deepEqual([one, others], [1, []]);
    assertSameBits(sum, sumOfItems([[[2, 2, 1], a]]));
  });

  it("have products of their own", () => {
    const values = Tensor.from([1, 2, 3, 4, 5, 5, 5, 5], [2, 4]);
    assert.deepEqual(productOfItems(values, values), [30, 100]);
  });

  it("have the deviations that each has alone", () => {
    const x = randn([4, 2, 33, 70], { seed: 7n });
    const expected = Array.from({ length: 4 }, (_, at) => std(narrowed(x, 0, at, 1)));
    assert.deepEqual(stdOfItems(x), expected);
    assert.ok(new Set(expected).size === 4 && expected.every((value) => Math.abs(value - 1) < 0.1));
    assert.deepEqual(stdOfItems(Tensor.from([1, 3, 2, 2], [2, 2])), [Math.fround(Math.SQRT2), 0]);
    assert.deepEqual(stdOfItems(Tensor.from([1, 2], [2])), [Number.NaN, Number.NaN]);
    const none = Tensor.zeros([2 ** 30, 0]);
    assert.throws(() => stdOfItems(none), { code: "tensor.bad-shape", message: /expected a batch of values/ });
  });
});
