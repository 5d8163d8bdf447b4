import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerEulerAncestralCFGPP", () => {
  it("takes its options under the names of the solver", async () => {
    const [choice] = (await invokeNode("SamplerEulerAncestralCFGPP", { eta: 0.5, s_noise: 1.25 })).result;
    assert.deepEqual(choice, { sampler: "euler_ancestral_cfg_pp", options: { eta: 0.5, s_noise: 1.25 } });
  });
});
