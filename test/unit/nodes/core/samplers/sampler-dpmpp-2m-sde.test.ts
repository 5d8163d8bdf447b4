import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerDPMPP_2M_SDE", () => {
  it("takes its options under the names of the solver", async () => {
    const [choice] = (
      await invokeNode("SamplerDPMPP_2M_SDE", { solver_type: "heun", eta: 0.5, s_noise: 1.25, noise_device: "gpu" })
    ).result;
    assert.deepEqual(choice, { sampler: "dpmpp_2m_sde", options: { solver_type: "heun", eta: 0.5, s_noise: 1.25 } });
  });
});
