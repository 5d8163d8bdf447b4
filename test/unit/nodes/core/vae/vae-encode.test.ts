import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, Tensor } from "latentkit";
import type { Latent } from "#src/host/types.js";
import { refuses } from "../../../../helpers/errors.js";

describe("VAEEncode", () => {
  const host = createPreviewHost();
  const encode = async (inputs: object): Promise<unknown[]> => (await invokeNode("VAEEncode", { ...inputs })).result;

  it("encodes colours without alpha", async () => {
    const { vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    const pixels = Tensor.full([1, 16, 24, 4], 0.25);
    const [{ samples }] = (await encode({ pixels: Tensor.full([1, 16, 24, 3], 0.25), vae })) as [Latent];
    for (let i = 3; i < pixels.size; i += 4) pixels.data[i] = 0;
    const [latent] = (await encode({ pixels, vae })) as [Latent];
    assert.deepEqual(latent.samples.shape, [1, 4, 2, 3]);
    assert.deepEqual(latent.samples.data, samples.data);
  });

  it("refuses bad inputs", async () => {
    const { vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    const pixels = Tensor.zeros([1, 16, 16, 3]);
    await refuses(encode({ pixels }), "input.missing", /vae/);
    await refuses(encode({ pixels, vae: {} }), "input.wrong-type", /vae/);
    await refuses(encode({ pixels: Tensor.zeros([1, 16, 16, 1]), vae }), "tensor.bad-shape", /VAEEncode/);
  });
});
