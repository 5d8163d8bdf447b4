import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("DisableNoise", () => {
  it("is no initial noise, and the seed 0 for a sampler's own", async () => {
    const { result } = await invokeNode("DisableNoise", {});
    assert.deepEqual(result[0], { seed: 0n, enabled: false });
  });
});
