import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import type { RunEvent } from "#src/graph/events.js";
import { withSmallPreview } from "#src/render/plain.js";

const previewOf = (preview: unknown) => {
  const event: RunEvent = { type: "progress", at: 0, nodeId: "1", value: 1, max: 2, preview };
  return (withSmallPreview(event) as { preview?: unknown }).preview;
};

describe("withSmallPreview", () => {
  it("copies the first image, clipped, NaN as 0", () => {
    const values = [0, 0.5, 1, -1, 2, Number.NaN];
    const image = Tensor.from([...values, ...values.map(() => 1)], [2, 1, 2, 3]);
    const expected = { data: Uint8Array.of(0, 128, 255, 0, 255, 0), width: 2, height: 1, channels: 3 };
    assert.deepEqual(previewOf(image), expected);
  });

  it("large images become means of squares, also at the edges", () => {
    const [height, width] = [2, 257];
    const image = Tensor.from(
      Float32Array.from({ length: height * width }, (_, i) => (i % width) / 255),
      [1, height, width, 1],
    );
    const small = previewOf(image) as { data: Uint8Array; width: number; height: number };
    assert.deepEqual([small.width, small.height], [86, 1]);
    assert.deepEqual([...small.data.subarray(0, 3), small.data.at(-1)], [1, 4, 7, 255]);
  });

  it("is none for anything else, and leaves other events alone", () => {
    for (const other of [
      undefined,
      "picture",
      {},
      Tensor.zeros([4]),
      Tensor.zeros([1, 0, 2, 3]),
      Tensor.zeros([1, 1, 1, 5]),
    ]) {
      assert.equal(previewOf(other), undefined);
    }
    const event: RunEvent = { type: "node-start", at: 0, nodeId: "1", displayId: "1" };
    assert.equal(withSmallPreview(event), event);
  });
});
