import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";

describe("FluxDisableGuidance", () => {
  it("takes the strength from every entry", async () => {
    const conditioning: Conditioning = [[Tensor.zeros([1, 77, 4]), { a: 1, guidance: 3.5 }]];
    const { result } = await invokeNode("FluxDisableGuidance", { conditioning });
    assert.deepEqual((result[0] as Conditioning)[0]![1], { a: 1, guidance: null });
  });
});
