import assert from "node:assert/strict";
import { invokeNode, type Latent, modelSampling, Tensor } from "latentkit";
import { analyticEntry, analyticModel } from "../../../../helpers/sampling/analytic-model.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("SamplerCustomAdvanced", () => {
  it("gives what SamplerCustom gives with the same parts", async () => {
    const { model } = analyticModel(modelSampling("sd15"));
    const [positive, negative] = [[analyticEntry(0.5)], [analyticEntry(-0.5)]];
    const common = {
      sampler: { sampler: "euler_ancestral", options: {} },
      sigmas: [4, 2, 1, 0],
      latent_image: { samples: Tensor.full([2, 4, 4, 4], 0.5), batch_index: [3, 1] },
    };
    const custom = { ...common, model, add_noise: true, noise_seed: 3, cfg: 2, positive, negative };
    const expected = (await invokeNode("SamplerCustom", custom)).result as [Latent, Latent];
    const { result } = await invokeNode("SamplerCustomAdvanced", {
      ...common,
      noise: { seed: 3n, enabled: true },
      guider: { kind: "cfg", model, positive, negative, cfg: 2 },
    });
    const [output, denoised] = result as [Latent, Latent];
    assertSameBits(output.samples, expected[0].samples);
    assertSameBits(denoised.samples, expected[1].samples);
    assert.deepEqual(output.batch_index, [3, 1]);
  });
});
