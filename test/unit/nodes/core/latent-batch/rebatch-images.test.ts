import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

const images = (...values: number[]): Tensor =>
  Tensor.from(
    values.flatMap((value) => new Array(3).fill(value)),
    [values.length, 1, 1, 3],
  );
const run = async (inputs: object) => (await invokeNode("RebatchImages", { ...inputs })).result[0] as Tensor[];
const valuesOf = (batch: Tensor) => [...batch.data].filter((_, at) => at % 3 === 0);

describe("RebatchImages", () => {
  it("deals the images of all batches into batches of one size", async () => {
    const batches = await run({ images: [images(1, 2, 3), images(4), images(5)], batch_size: 2 });
    assert.deepEqual(batches.map(valuesOf), [[1, 2], [3, 4], [5]]);
    assert.deepEqual(batches[0]!.shape, [2, 1, 1, 3]);
    assert.deepEqual((await run({ images: images(1, 2), batch_size: [9] })).map(valuesOf), [[1, 2]]);
  });

  it("refuses images of different sizes in one batch", async () => {
    const mixed = [images(1), Tensor.zeros([1, 2, 1, 3])];
    await refuses(
      run({ images: mixed, batch_size: 2 }),
      "tensor.bad-shape",
      /RebatchImages, input "images": expected images of shape \[1, 1, 1, 3\] in one batch, received a tensor of shape \[1, 2, 1, 3\]/,
    );
    assert.equal((await run({ images: mixed, batch_size: 1 })).length, 2);
  });
});
