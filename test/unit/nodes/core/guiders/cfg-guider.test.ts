import assert from "node:assert/strict";
import { invokeNode, modelSampling } from "latentkit";
import { analyticEntry } from "../../../../helpers/sampling/analytic-model.js";

describe("CFGGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const model = { sampling: modelSampling("sd15") };
    const [a, b] = [[analyticEntry(1)], [analyticEntry(2)]];
    const { result } = await invokeNode("CFGGuider", { model, positive: a, negative: b, cfg: 3 });
    assert.deepEqual(result[0], { kind: "cfg", model, positive: a, negative: b, cfg: 3 });
    const sampler = { sampler: "euler", options: {} };
    const noise = { seed: 0n, enabled: false };
    const latent_image = { samples: analyticEntry([1, 2], {}, 4)[0].reshape([1, 2, 2, 2]) };
    const inputs = { guider: result[0], sampler, noise, sigmas: [], latent_image };
    const sampled = await invokeNode("SamplerCustomAdvanced", inputs);
    assert.equal((sampled.result[0] as typeof latent_image).samples, latent_image.samples);
  });
});
