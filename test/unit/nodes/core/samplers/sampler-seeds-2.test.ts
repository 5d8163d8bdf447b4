import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerSEEDS2", () => {
  it("takes its options under the names of the solver", async () => {
    const [choice] = (await invokeNode("SamplerSEEDS2", { solver_type: "phi_2", eta: 0.5, s_noise: 1.25, r: 0.75 }))
      .result;
    assert.deepEqual(choice, {
      sampler: "seeds_2",
      options: { solver_type: "phi_2", eta: 0.5, s_noise: 1.25, r: 0.75 },
    });
  });
});
