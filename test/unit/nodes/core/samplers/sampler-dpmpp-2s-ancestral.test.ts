import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerDPMPP_2S_Ancestral", () => {
  it("takes its options under the names of the solver", async () => {
    const [choice] = (await invokeNode("SamplerDPMPP_2S_Ancestral", { eta: 0.5, s_noise: 1.25 })).result;
    assert.deepEqual(choice, { sampler: "dpmpp_2s_ancestral", options: { eta: 0.5, s_noise: 1.25 } });
  });
});
