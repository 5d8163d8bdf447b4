import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

describe("VAEDecode", () => {
  const host = createPreviewHost();
  const decode = async (inputs: object): Promise<unknown[]> => (await invokeNode("VAEDecode", { ...inputs })).result;

  it("decodes what the vae has encoded", async () => {
    const { vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    const samples = { samples: await vae.encode(Tensor.full([1, 16, 24, 3], 0.25)) };
    const [image] = (await decode({ samples, vae })) as [Tensor];
    assert.deepEqual(image.shape, [1, 16, 24, 3]);
    for (const value of image.data) assert.ok(Math.abs(value - 0.25) < 1e-5);
  });

  it("refuses bad inputs", async () => {
    const { vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    await refuses(decode({ samples: Tensor.zeros([1, 16, 16, 3]), vae }), "input.wrong-type", /samples/);
    await refuses(decode({ samples: { samples: Tensor.zeros([1, 16, 2, 2]) }, vae }), "tensor.bad-shape");
  });
});
