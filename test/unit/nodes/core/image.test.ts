import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";

describe("GetImageSize", () => {
  it("returns width, height and the size of the batch", async () => {
    const { result } = await invokeNode("GetImageSize", { image: Tensor.zeros([5, 2, 3, 4]) });
    assert.deepEqual(result, [3, 2, 5]);
  });
});
