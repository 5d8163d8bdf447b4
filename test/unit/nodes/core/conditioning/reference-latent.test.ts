import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";

describe("ReferenceLatent", () => {
  const [first, second] = [Tensor.zeros([1, 16, 2, 2]), Tensor.full([1, 16, 4, 2], 1)];
  const run = async (conditioning: Conditioning, samples?: Tensor) => {
    const inputs = samples === undefined ? { conditioning } : { conditioning, latent: { samples } };
    return (await invokeNode("ReferenceLatent", inputs)).result[0] as Conditioning;
  };

  it("appends a latent to those of each entry, and passes a conditioning on without one", async () => {
    const one = await run([[Tensor.zeros([1, 77, 4]), { a: 1 }]], first);
    const two = await run(one, second);
    const references = two[0]![1].reference_latents as Tensor[];
    assert.equal(references.length, 2);
    assert.ok(references[0] === first && references[1] === second);
    assert.deepEqual((one[0]![1].reference_latents as Tensor[]).length, 1);
    assert.equal(await run(two), two);
  });
});
