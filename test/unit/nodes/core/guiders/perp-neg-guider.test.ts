import assert from "node:assert/strict";
import { invokeNode, modelSampling } from "latentkit";
import { analyticEntry } from "../../../../helpers/sampling/analytic-model.js";

describe("PerpNegGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const model = { sampling: modelSampling("sd15") };
    const [a, b, c] = [[analyticEntry(1)], [analyticEntry(2)], [analyticEntry(3)]];
    const { result } = await invokeNode("PerpNegGuider", {
      model,
      positive: a,
      negative: b,
      empty_conditioning: c,
      cfg: 3,
      neg_scale: 0.5,
    });
    assert.deepEqual(result[0], { kind: "perp-neg", model, positive: a, negative: b, empty: c, cfg: 3, negScale: 0.5 });
    const sampler = { sampler: "euler", options: {} };
    const noise = { seed: 0n, enabled: false };
    const latent_image = { samples: analyticEntry([1, 2], {}, 4)[0].reshape([1, 2, 2, 2]) };
    const inputs = { guider: result[0], sampler, noise, sigmas: [], latent_image };
    const sampled = await invokeNode("SamplerCustomAdvanced", inputs);
    assert.equal((sampled.result[0] as typeof latent_image).samples, latent_image.samples);
  });
});
