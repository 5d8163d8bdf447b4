import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { assertItems, guidanceOf, itemOf, step, wave } from "../../../../helpers/graph/guidance.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("Epsilon Scaling", () => {
  const changed = async (scaling_factor: number) =>
    (await guidanceOf("Epsilon Scaling", { scaling_factor })).guidance.after![0]!(wave(5), step());

  it("divides the noise that the estimate takes away", async () => {
    assertItems(await changed(1.25), (item) => {
      const [x, denoised] = [itemOf(wave(1), item), itemOf(wave(5), item)];
      return x.map((value, i) => value - (value - denoised[i]!) / 1.25);
    });
  });

  it("changes nothing for a factor of 1, and adds to what was there", async () => {
    assertSameBits(await changed(1), wave(5));
    const { model } = await guidanceOf("CFGZeroStar", {});
    const [both] = (await invokeNode("Epsilon Scaling", { model, scaling_factor: 1.1 })).result;
    assert.equal(both.guidance!.after!.length, 2);
    assert.equal(both.guidance!.after![0], model.guidance!.after![0]);
  });
});
