import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, type Latent, randn, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { assertClose } from "../../../../helpers/tensor/bits.js";

const run = async (vae: unknown, pixels: Tensor, overlap = 32) => {
  const inputs = { pixels, vae, tile_size: 64, overlap, temporal_size: 64, temporal_overlap: 8 };
  return ((await invokeNode("VAEEncodeTiled", inputs)).result[0] as Latent).samples;
};

describe("VAEEncodeTiled", () => {
  it("gives the latent of a whole encode where a cell follows from its own pixels", async () => {
    const { vae } = await createPreviewHost().loadCheckpoint("preview-sdxl.safetensors");
    for (const [height, width, overlap] of [
      [64, 72, 32],
      [161, 107, 16],
      [200, 64, 0],
    ] as const) {
      const pixels = randn([2, height, width, 3], { seed: height });
      assertClose(await run(vae, pixels, overlap), await vae.encode(pixels), (x) => 1e-6 * Math.max(1, Math.abs(x)));
    }
  });

  it("leaves out alpha, and refuses an image without a whole cell", async () => {
    const shapes: (readonly number[])[] = [];
    const vae = { encode: async (image: Tensor) => shapes.push(image.shape) && Tensor.zeros([1, 4, 8, 8]) };
    assert.deepEqual((await run(vae, Tensor.zeros([1, 64, 96, 4]))).shape, [1, 4, 8, 12]);
    assert.deepEqual(shapes, new Array(2).fill([1, 64, 64, 3]));
    await refuses(
      run(vae, Tensor.zeros([1, 64, 7, 3])),
      "input.invalid",
      /input "pixels": expected an image of 3 or 4/,
    );
    await refuses(run(vae, Tensor.zeros([1, 64, 64, 1])), "input.invalid", /pixels/);
  });

  it("refuses latents that do not fit their tiles", async () => {
    let channels = 3;
    const vae = { encode: async () => Tensor.zeros([1, channels++, 8, 8]) };
    await refuses(run(vae, Tensor.zeros([1, 64, 96, 3])), "value.invalid", /a vae that returns \[1, 3, 8, 8\]/);
  });
});
