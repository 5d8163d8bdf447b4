import assert from "node:assert/strict";
import { decodePng, Tensor } from "latentkit";
import { previewPng } from "#src/render/preview-png.js";

describe("previewPng", () => {
  it("encodes the first image of a batch", async () => {
    const png = await previewPng(Tensor.from(Float32Array.of(1, 0, 0.5, 0, 0, 0), [2, 1, 1, 3]));
    assert.deepEqual([...(await decodePng(png!)).data], [255, 0, 127]);
  });

  it("passes files on, and has none for anything else", async () => {
    const file = Uint8Array.of(1, 2);
    assert.equal(await previewPng(file), file);
    const empty = Tensor.zeros([0, 4, 4, 3]);
    for (const other of [undefined, 7, "x", {}, Tensor.zeros([4]), empty, Tensor.zeros([1, 2, 2, 9])]) {
      assert.equal(await previewPng(other), undefined);
    }
  });
});
