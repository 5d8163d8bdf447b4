import assert from "node:assert/strict";
import { type Conditioning, invokeNode, type Latent, Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("InstructPixToPixConditioning", () => {
  it("encodes whole cells of the image for both sides, and begins with an empty latent of their size", async () => {
    const vae = {
      encode: async (image: Tensor) => Tensor.full([1, 4, image.shape[1]! / 8, image.shape[2]! / 8], image.data[0]!),
      decode: async (latent: Tensor) => latent,
    };
    const prompt = (value: number): Conditioning => [[Tensor.full([1, 77, 4], value), { a: value }]];
    const inputs = { positive: prompt(1), negative: prompt(2), vae, pixels: Tensor.full([1, 19, 24, 4], 0.25) };
    const { result } = await invokeNode("InstructPixToPixConditioning", inputs);
    const [positive, negative, latent] = result as [Conditioning, Conditioning, Latent];
    for (const [value, [[tokens, options]]] of [
      [1, positive],
      [2, negative],
    ] as [number, [Conditioning[number]]][]) {
      assert.equal(tokens.data[0], value);
      assert.equal(options.a, value);
      assertSameBits(options.concat_latent_image, Tensor.full([1, 4, 2, 3], 0.25));
    }
    assertSameBits(latent.samples, Tensor.zeros([1, 4, 2, 3]));
  });
});
