import assert from "node:assert/strict";
import { inspect } from "node:util";
import { randn, Tensor } from "latentkit";
import { returnMemory, takeMemory } from "#src/tensor/memory-pool.js";
import { itemToBytes, planesToImage, resizeBilinear, resizeToImage, toBytes } from "#src/tensor/ops.js";

describe("a deferred image", () => {
  const pictures = [
    [3, 48, 40],
    [2, 7, 90],
    [1, 128, 150],
  ] as const;

  for (const [batch, height, width] of pictures) {
    it(`of ${batch} x ${height} x ${width} has the bytes of its values`, () => {
      const small = randn([batch, 3, 6, 5], { seed: 3n });
      const steps = planesToImage(resizeBilinear(small, height, width));
      const image = resizeToImage(small, height, width);
      const items = () => Buffer.concat(Array.from({ length: batch }, (_, item) => itemToBytes(image, item)));
      const expected = Buffer.from(toBytes(steps));
      const { memory } = image;
      assert.deepEqual([image.size, memory.byteLength], [steps.size, steps.memory.byteLength]);
      assert.ok(items().equals(expected));
      assert.ok(expected.equals(toBytes(image)));
      assert.ok(image.deferred !== undefined, "it was not read");
      assert.deepEqual(image.data, steps.data);
      assert.deepEqual([image.deferred, image.memory === memory], [undefined, true]);
      image.data[1] = 0.5;
      expected[1] = 127;
      assert.ok(items().equals(expected), "what was written into it counts from then on");
      assert.ok(expected.equals(toBytes(image)));
    });
  }

  it("has memory that returns to the pool like any other", () => {
    const image = resizeToImage(Tensor.zeros([1, 3, 8, 8]), 64, 64);
    const memory = image.memory as ArrayBuffer;
    returnMemory(memory);
    assert.equal(takeMemory(memory.byteLength), memory);
  });

  it("is computed by clone and reshape, not by console.log", () => {
    const grey = () => resizeToImage(Tensor.full([1, 3, 1, 1], 0.25), 2, 2);
    assert.deepEqual(grey().clone().data, new Float32Array(12).fill(0.25));
    assert.deepEqual(grey().reshape([12]).data, new Float32Array(12).fill(0.25));
    assert.match(inspect(grey()), /Tensor \[1, 2, 2, 3\] not computed yet/);
    const none = resizeToImage(Tensor.zeros([0, 3, 2, 2]), 16, 16);
    assert.deepEqual([none.size, none.data.length, toBytes(none).length], [0, 0, 0]);
  });
});
