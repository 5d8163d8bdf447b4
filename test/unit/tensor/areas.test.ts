import assert from "node:assert/strict";
import { randn, Tensor } from "latentkit";
import { addMasked } from "#src/tensor/areas.js";
import { assertSameBits } from "../../helpers/tensor/bits.js";

const f = Math.fround;
const at = (x: Tensor, ...position: number[]): number =>
  x.data[position.reduce((index, side, axis) => index * x.shape[axis]! + side, 0)]!;

describe("tensor/areas", () => {
  const destination = randn([2, 3, 7, 9], { seed: 1n });
  const source = randn([2, 3, 4, 5], { seed: 2n });

  it("addMasked adds source * mask within the area and nothing outside it", () => {
    for (const masks of [1, 2]) {
      const mask = randn([masks, 4, 5], { seed: 3n });
      const sum = addMasked(destination, source, mask, 2, 4);
      for (let b = 0; b < 2; b++) {
        for (let c = 0; c < 3; c++) {
          for (let y = 0; y < 7; y++) {
            for (let x = 0; x < 9; x++) {
              const before = at(destination, b, c, y, x);
              const inside = y >= 2 && y < 6 && x >= 4;
              const product = inside ? f(at(source, b, c, y - 2, x - 4) * at(mask, b % masks, y - 2, x - 4)) : 0;
              assert.equal(at(sum, b, c, y, x), inside ? f(before + product) : before);
            }
          }
        }
      }
    }
  });

  it("addMasked leaves the destination alone unless out is the destination", () => {
    const own = destination.clone();
    const mask = Tensor.full([4, 5], 0.5);
    const sum = addMasked(own, source, mask, 0, 0);
    assertSameBits(own, destination);
    assert.equal(addMasked(own, source, mask, 0, 0, own), own);
    assertSameBits(own, sum);
    assert.throws(() => addMasked(own, source, mask, 0, 0, Tensor.zeros([3])), { code: "tensor.bad-shape" });
    assert.throws(() => addMasked(own, own, Tensor.full([7, 9], 1), 0, 0, own), RangeError);
  });

  it("areas that reach outside and shapes that do not fit are refused", () => {
    const mask = Tensor.full([4, 5], 1);
    const refuses = (call: () => unknown, message: RegExp): void => {
      assert.throws(call, { code: "tensor.bad-shape", message });
    };
    for (const [y, x] of [
      [4, 0],
      [0, 5],
      [-1, 0],
      [0, -1],
      [0.5, 0],
      [0, Number.NaN],
    ] as const) {
      refuses(
        () => addMasked(destination, source, mask, y, x),
        /addMasked: expected an area within 7 rows and 9 columns/,
      );
    }
    refuses(() => addMasked(destination, Tensor.zeros([2, 3, 1, 1]), mask, 0, 0), /expected a mask \[1 or 2, 1, 1\]/);
    refuses(() => addMasked(destination, source, Tensor.full([3, 4, 5], 1), 0, 0), /expected a mask \[1 or 2, 4, 5\]/);
    refuses(() => addMasked(destination, Tensor.zeros([1, 3, 4, 5]), mask, 0, 0), /expected a source \[2, 3, h, w\]/);
    refuses(() => addMasked(destination, Tensor.zeros([2, 1, 4, 5]), mask, 0, 0), /expected a source \[2, 3, h, w\]/);
  });
});
