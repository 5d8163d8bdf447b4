import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { productOfItems, sumOfItems } from "#src/host/sampling/items.js";
import { weightedSum } from "#src/tensor/ops.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

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

  it("have products of their own", () => {
    const values = Tensor.from([1, 2, 3, 4, 5, 5, 5, 5], [2, 4]);
    assert.deepEqual(productOfItems(values, values), [30, 100]);
  });
});
