import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerER_SDE", () => {
  const run = async (solver_type: string, eta: number) => {
    const inputs = { solver_type, max_stage: 2, eta, s_noise: 1.25 };
    return (await invokeNode("SamplerER_SDE", inputs)).result[0] as {
      sampler: string;
      options: { s_noise: number; max_stage: number; noise_scaler: ((sigma: number) => number) | null };
    };
  };

  it("keeps the solver's own noise for ER-SDE, whatever eta is", async () => {
    const { sampler, options } = await run("ER-SDE", 0);
    assert.deepEqual([sampler, options], ["er_sde", { s_noise: 1.25, max_stage: 2, noise_scaler: null }]);
  });

  it("scales noise by sigma to the power of eta and 1 for Reverse-time SDE", async () => {
    const { options } = await run("Reverse-time SDE", 2);
    assert.equal(options.noise_scaler!(3), 27);
    assert.equal(options.s_noise, 1.25);
  });

  it("adds no noise for ODE, and for Reverse-time SDE with eta 0", async () => {
    for (const { options } of [await run("ODE", 5), await run("Reverse-time SDE", 0)]) {
      assert.equal(options.noise_scaler!(3), 3);
      assert.equal(options.s_noise, 0);
    }
  });
});
