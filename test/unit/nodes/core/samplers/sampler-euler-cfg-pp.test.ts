import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerEulerCFGpp", () => {
  it("chooses euler_cfg_pp, and refuses the version that is not described", async () => {
    const [choice] = (await invokeNode("SamplerEulerCFGpp", { version: "regular" })).result;
    assert.deepEqual(choice, { sampler: "euler_cfg_pp", options: {} });
    await assert.rejects(invokeNode("SamplerEulerCFGpp", { version: "alternative" }), {
      code: "input.invalid",
      message: 'SamplerEulerCFGpp, input "version": expected regular, received "alternative".',
    });
  });
});
