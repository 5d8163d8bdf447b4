import assert from "node:assert/strict";
import { invokeNode, modelSampling } from "latentkit";

describe("SamplerSASolver", () => {
  it("has noise between the sigmas of its percents, both included", async () => {
    const model = { sampling: modelSampling("sd3") };
    const orders = { predictor_order: 2, corrector_order: 3, use_pece: true, simple_order_2: false };
    const inputs = { model, eta: 0.7, sde_start_percent: 0.25, sde_end_percent: 0.5, s_noise: 1.25, ...orders };
    const [{ sampler, options }] = (await invokeNode("SamplerSASolver", inputs)).result as [
      { sampler: string; options: { tau_func: (sigma: number) => number } },
    ];
    const { tau_func, ...rest } = options;
    assert.equal(sampler, "sa_solver");
    assert.deepEqual(rest, { s_noise: 1.25, ...orders });
    // of shift 3, percents 0.25 and 0.5 are at 0.9 and 0.75
    assert.deepEqual([0.91, 0.9, 0.8, 0.75, 0.74].map(tau_func), [0, 0.7, 0.7, 0.7, 0]);
  });
});
