import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerDPMPP_SDE", () => {
  it("takes its options, and the stream of the CPU for either device", async () => {
    const [choice] = (await invokeNode("SamplerDPMPP_SDE", { eta: 0.5, s_noise: 1.25, r: 0.3, noise_device: "gpu" }))
      .result;
    assert.deepEqual(choice, { sampler: "dpmpp_sde", options: { eta: 0.5, s_noise: 1.25, r: 0.3 } });
  });
});
