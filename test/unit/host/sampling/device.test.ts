import assert from "node:assert/strict";
import { onFakeGpu } from "../../../helpers/process/fake-gpu.js";

describe("sampling on a device", () => {
  it("has the CPU's bits, within areas and masks too @long", async () => {
    const program = `
      const sampling = latentkit.modelSampling("sd3");
      const predict = async (x, sigma, cond) => ops.scale(x, 0.9 - sigma / 10 + cond.length / 100);
      const model = { sampling, predict };
      const entry = (options) => [Tensor.full([1, 77, 8], 0.5), options];
      const noise_mask = randn([1, 24, 24], { seed: 3n });
      const settings = { model, seed: 5, steps: 6, cfg: 3, scheduler: "simple", denoise: 0.8 };
      const sides = {
        positive: [entry({ area: [4, 5, 1, 2], strength: 0.7 }), entry({ mask: noise_mask }), entry({ end_percent: 0.5 })],
        negative: [entry({})],
      };
      const latent_image = { samples: Tensor.full([2, 16, 12, 12], 0.25), noise_mask };
      const run = async (device, sampler_name) => {
        const inputs = { ...settings, ...sides, sampler_name, latent_image };
        const { result } = await latentkit.invokeNode("KSampler", inputs, { device });
        return bits(result[0].samples);
      };
      for (const sampler of ["euler", "heun", "euler_ancestral", "dpmpp_2m", "uni_pc", "ddim"]) {
        const [here, there] = [await run("cpu", sampler), await run("cuda:0", sampler)];
        send([sampler, here === there, here.length]);
      }
      send([counted("cuLaunchKernel")[0] > 100, counted("misuses"), warnings]);
    `;
    const sent = await onFakeGpu(program);
    assert.deepEqual(sent.pop(), [true, [0], []]);
    assert.equal(sent.length, 6);
    for (const [sampler, isSame, length] of sent as [string, boolean, number][])
      assert.deepEqual([isSame, length], [true, 24576], sampler);
  });
});
