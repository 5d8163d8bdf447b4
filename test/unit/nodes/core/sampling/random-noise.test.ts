import assert from "node:assert/strict";
import { invokeNode, registry } from "latentkit";

describe("RandomNoise", () => {
  it("is the noise of any seed up to 2^64 - 1, and starts the CPU's stream", async () => {
    const { result } = await invokeNode("RandomNoise", { noise_seed: "18446744073709551615" });
    assert.deepEqual(result[0], { seed: 2n ** 64n - 1n, enabled: true });
    assert.equal(registry.get("RandomNoise")!.noiseStream!({}), "cpu");
  });
});
