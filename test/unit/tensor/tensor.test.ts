import assert from "node:assert/strict";
import { LatentkitError, Tensor } from "latentkit";

describe("Tensor", () => {
  it("takes a Float32Array over and copies anything else", () => {
    const data = Float32Array.of(1, 2, 3, 4);
    assert.equal(Tensor.from(data, [2, 2]).data, data);
    assert.deepEqual([...Tensor.from([1, 2], [2]).data], [1, 2]);
  });

  it("makes zeros, fills, clones and reshapes", () => {
    assert.deepEqual([...Tensor.zeros([2, 2]).data], [0, 0, 0, 0]);
    const full = Tensor.full([2, 3], 0.5);
    const copy = full.clone();
    copy.data[0] = 9;
    assert.equal(full.data[0], 0.5);
    assert.equal(full.reshape([3, 2]).data, full.data);
    assert.equal(full.size, 6);
    assert.deepEqual(Tensor.zeros([]).shape, []);
    assert.equal(Tensor.zeros([3, 0]).size, 0);
  });

  it("fills what it makes where the memory is left as it is", () => {
    const size = 100_003;
    const full = Tensor.full([size], 0.25);
    assert.ok(full.data.every((value) => value === 0.25));
    assert.deepEqual(full.clone().data, full.data);
    assert.equal(Tensor.unfilled([5, size]).size, 5 * size);
    assert.equal(full.data.buffer.byteLength, 4 * size);
  });

  it("does not follow a shape that is changed later", () => {
    const shape = [2, 2];
    const tensor = Tensor.zeros(shape);
    shape[0] = 7;
    assert.deepEqual(tensor.shape, [2, 2]);
  });

  it("refuses data, shapes and sizes that do not fit", () => {
    const refuses = (call: () => unknown, pattern: RegExp): void => {
      assert.throws(call, (error: unknown) => error instanceof LatentkitError && pattern.test(error.message));
    };
    refuses(() => Tensor.from([1, 2, 3], [2, 2]), /expected 4 values for shape \[2, 2\], received 3/);
    refuses(() => Tensor.zeros([2, -1]), /whole numbers from 0, received -1/);
    refuses(() => Tensor.zeros(["2" as unknown as number]), /received "2"/);
    refuses(() => Tensor.zeros(5 as unknown as number[]), /a list of sizes, received 5/);
    refuses(() => Tensor.zeros([1e6, 1e6]), /at most 1073741824 elements, received 1000000000000/);
  });
});
