import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

describe("FluxKontextMultiReferenceLatentMethod", () => {
  const run = async (method: string) => {
    const conditioning: Conditioning = [[Tensor.zeros([1, 77, 4]), { a: 1 }]];
    const inputs = { conditioning, reference_latents_method: method };
    const { result } = await invokeNode("FluxKontextMultiReferenceLatentMethod", inputs);
    return (result[0] as Conditioning)[0]![1];
  };

  it("names the method in every entry", async () => {
    assert.deepEqual(await run("index"), { a: 1, reference_latents_method: "index" });
    assert.deepEqual(await run("uxo/uno"), { a: 1, reference_latents_method: "uxo" });
    await refuses(run("other"), "input.not-in-list", /reference_latents_method/);
  });
});
