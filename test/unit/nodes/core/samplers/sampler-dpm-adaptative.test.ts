import assert from "node:assert/strict";
import { invokeNode, registry } from "latentkit";
import { golden } from "../../../../helpers/tensor/golden.js";

describe("SamplerDPMAdaptative", () => {
  it("has the defaults of dpm_adaptive", async () => {
    const { inputs } = registry.get("SamplerDPMAdaptative")!;
    const defaults = Object.fromEntries(Object.entries(inputs).map(([name, { options }]) => [name, options.default]));
    const { meta } = golden<unknown, { sampler_signatures: Record<string, Record<string, unknown>> }>("samplers");
    const { noise_sampler, return_info, ...reference } = meta.sampler_signatures.dpm_adaptive!;
    assert.deepEqual(defaults, reference);
    const [choice] = (await invokeNode("SamplerDPMAdaptative", { ...defaults, rtol: 0.1 })).result;
    assert.deepEqual(choice, { sampler: "dpm_adaptive", options: { ...reference, rtol: 0.1 } });
  });
});
