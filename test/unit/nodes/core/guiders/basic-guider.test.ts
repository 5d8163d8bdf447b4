import assert from "node:assert/strict";
import { invokeNode, modelSampling } from "latentkit";
import { analyticEntry } from "../../../../helpers/sampling/analytic-model.js";

describe("BasicGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const model = { sampling: modelSampling("sd15") };
    const [a] = [[analyticEntry(1)]];
    const { result } = await invokeNode("BasicGuider", { model, conditioning: a });
    assert.deepEqual(result[0], { kind: "basic", model, positive: a });
    const sampler = { sampler: "euler", options: {} };
    const noise = { seed: 0n, enabled: false };
    const latent_image = { samples: analyticEntry([1, 2], {}, 4)[0].reshape([1, 2, 2, 2]) };
    const inputs = { guider: result[0], sampler, noise, sigmas: [], latent_image };
    const sampled = await invokeNode("SamplerCustomAdvanced", inputs);
    assert.equal((sampled.result[0] as typeof latent_image).samples, latent_image.samples);
  });
});
