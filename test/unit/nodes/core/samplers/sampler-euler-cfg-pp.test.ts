import assert from "node:assert/strict";
import { invokeNode, validateGraph } from "latentkit";

describe("SamplerEulerCFGpp", () => {
  it("chooses euler_cfg_pp, and refuses the version that is not described", async () => {
    const [choice] = (await invokeNode("SamplerEulerCFGpp", { version: "regular" })).result;
    assert.deepEqual(choice, { sampler: "euler_cfg_pp", options: {} });
    await assert.rejects(invokeNode("SamplerEulerCFGpp", { version: "alternative" }), {
      code: "input.invalid",
      message:
        'SamplerEulerCFGpp, input "version": expected regular, the one version that latentkit has, received "alternative".',
    });
    const graph = { 1: { class_type: "SamplerEulerCFGpp", inputs: { version: "alternative" } } };
    const all = { ...graph, 2: { class_type: "PreviewAny", inputs: { source: ["1", 0] } } };
    const validation = await validateGraph(all);
    assert.ok(!validation.ok);
    assert.match(JSON.stringify(validation.nodeErrors), /the one version that latentkit has/);
  });
});
