import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, Tensor } from "latentkit";
import type { Latent } from "#src/host/types.js";
import { refuses } from "../../../helpers/errors.js";

const run = async (key: string, inputs: object): Promise<unknown[]> => (await invokeNode(key, { ...inputs })).result;

describe("VAEEncode and VAEDecode", () => {
  it("encode colours without alpha, and decode them", async () => {
    const { vae } = await createPreviewHost().loadCheckpoint("preview-sd15.safetensors");
    const pixels = Tensor.full([1, 16, 24, 4], 0.25);
    for (let i = 3; i < pixels.size; i += 4) pixels.data[i] = 0;
    const [latent] = (await run("VAEEncode", { pixels, vae })) as [Latent];
    assert.deepEqual(latent.samples.shape, [1, 4, 2, 3]);
    const [image] = (await run("VAEDecode", { samples: latent, vae })) as [Tensor];
    assert.deepEqual(image.shape, [1, 16, 24, 3]);
    for (const value of image.data) assert.ok(Math.abs(value - 0.25) < 1e-5);
  });

  it("refuse bad inputs", async () => {
    const { vae } = await createPreviewHost().loadCheckpoint("preview-sd15.safetensors");
    const pixels = Tensor.zeros([1, 16, 16, 3]);
    await refuses(run("VAEEncode", { pixels }), "input.missing", /vae/);
    await refuses(run("VAEEncode", { pixels, vae: {} }), "input.wrong-type", /vae/);
    await refuses(run("VAEEncode", { pixels: Tensor.zeros([1, 16, 16, 1]), vae }), "tensor.bad-shape", /VAEEncode/);
    await refuses(run("VAEDecode", { samples: pixels, vae }), "input.wrong-type", /samples/);
    await refuses(run("VAEDecode", { samples: { samples: Tensor.zeros([1, 16, 2, 2]) }, vae }), "tensor.bad-shape");
  });
});
