import assert from "node:assert/strict";
import { invokeNode, SAMPLERS } from "latentkit";

describe("KSamplerSelect", () => {
  it("is any sampler by its name, without options", async () => {
    for (const sampler of SAMPLERS) {
      const { result } = await invokeNode("KSamplerSelect", { sampler_name: sampler });
      assert.deepEqual(result[0], { sampler, options: {} });
    }
  });
});
