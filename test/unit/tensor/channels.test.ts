import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { channelsFirst, channelsLast } from "#src/tensor/channels.js";

describe("channelsFirst and channelsLast", () => {
  const image = Tensor.from(
    Array.from({ length: 24 }, (_, i) => i),
    [2, 2, 2, 3],
  );

  it("move the axis of channels", () => {
    const planes = channelsFirst(image);
    assert.deepEqual([...planes.shape], [2, 3, 2, 2]);
    assert.deepEqual([...planes.data.subarray(0, 12)], [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
    assert.deepEqual([...planes.data.subarray(12, 16)], [12, 15, 18, 21]);
  });

  it("undo each other", () => {
    const back = channelsLast(channelsFirst(image));
    assert.deepEqual([...back.shape], [...image.shape]);
    assert.deepEqual([...back.data], [...image.data]);
  });
});
