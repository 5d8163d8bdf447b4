import assert from "node:assert/strict";
import { invokeNode, LatentkitError, Tensor } from "latentkit";

const image = Tensor.full([1, 30, 40, 3], 0.5);

async function sidesOf(inputs: { megapixels: number; resolution_steps?: number }): Promise<number[]> {
  const scaled = await invokeNode("ImageScaleToTotalPixels", { image, upscale_method: "area", ...inputs });
  return [...(scaled.result[0] as Tensor).shape];
}

describe("ImageScaleToTotalPixels", () => {
  it("keeps the proportions at the number of pixels", async () => {
    assert.deepEqual(await sidesOf({ megapixels: 0.05 }), [1, 198, 264, 3]);
  });

  it("rounds both sides to multiples of the steps, the nearest ones", async () => {
    assert.deepEqual(await sidesOf({ megapixels: 0.05, resolution_steps: 64 }), [1, 192, 256, 3]);
  });

  it("refuses steps that are too large for the number of pixels", async () => {
    const pending = sidesOf({ megapixels: 0.01, resolution_steps: 256 });
    await assert.rejects(pending, (error) => {
      assert.ok(error instanceof LatentkitError && error.code === "value.out-of-range");
      assert.match(error.message, /input "megapixels": expected enough pixels .* at least 256, received 0.01/);
      return true;
    });
  });
});
