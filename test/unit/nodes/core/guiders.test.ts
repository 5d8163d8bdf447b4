import assert from "node:assert/strict";
import { invokeNode, modelSampling } from "latentkit";
import { analyticEntry } from "../../../helpers/sampling/analytic-model.js";

const model = { sampling: modelSampling("sd15") };
const [a, b, c] = [[analyticEntry(1)], [analyticEntry(2)], [analyticEntry(3)]];

async function assertSocketTakes(guider: unknown): Promise<void> {
  const sampler = { sampler: "euler", options: {} };
  const noise = { seed: 0n, enabled: false };
  const latent_image = { samples: analyticEntry([1, 2], {}, 4)[0].reshape([1, 2, 2, 2]) };
  const inputs = { guider, sampler, noise, sigmas: [], latent_image };
  const sampled = await invokeNode("SamplerCustomAdvanced", inputs);
  assert.equal((sampled.result[0] as typeof latent_image).samples, latent_image.samples);
}

describe("BasicGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const { result } = await invokeNode("BasicGuider", { model, conditioning: a });
    assert.deepEqual(result[0], { kind: "basic", model, positive: a });
    await assertSocketTakes(result[0]);
  });
});

describe("CFGGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const { result } = await invokeNode("CFGGuider", { model, positive: a, negative: b, cfg: 3 });
    assert.deepEqual(result[0], { kind: "cfg", model, positive: a, negative: b, cfg: 3 });
    await assertSocketTakes(result[0]);
  });
});

describe("DualCFGGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const { result } = await invokeNode("DualCFGGuider", {
      model,
      cond1: a,
      cond2: b,
      negative: c,
      cfg_conds: 3,
      cfg_cond2_negative: 2,
      style: "nested",
    });
    assert.deepEqual(result[0], {
      kind: "dual-cfg",
      model,
      cond1: a,
      cond2: b,
      negative: c,
      style: "nested",
      cfgConds: 3,
      cfgCond2Negative: 2,
    });
    await assertSocketTakes(result[0]);
  });
});

describe("PerpNegGuider", () => {
  it("is its inputs as a guider, which a socket takes", async () => {
    const { result } = await invokeNode("PerpNegGuider", {
      model,
      positive: a,
      negative: b,
      empty_conditioning: c,
      cfg: 3,
      neg_scale: 0.5,
    });
    assert.deepEqual(result[0], { kind: "perp-neg", model, positive: a, negative: b, empty: c, cfg: 3, negScale: 0.5 });
    await assertSocketTakes(result[0]);
  });
});
