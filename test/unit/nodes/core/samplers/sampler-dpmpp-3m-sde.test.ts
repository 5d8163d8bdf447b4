import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerDPMPP_3M_SDE", () => {
  it("takes its options under the names of the solver", async () => {
    const [choice] = (await invokeNode("SamplerDPMPP_3M_SDE", { eta: 0.5, s_noise: 1.25, noise_device: "cpu" })).result;
    assert.deepEqual(choice, { sampler: "dpmpp_3m_sde", options: { eta: 0.5, s_noise: 1.25 } });
  });
});
