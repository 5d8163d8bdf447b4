import assert from "node:assert/strict";
import { invokeNode, type Latent, Tensor } from "latentkit";

describe("noise masks of batches", () => {
  const samples = Tensor.zeros([3, 4, 2, 2]);
  for (const noise_mask of [Tensor.full([5, 7], 0.5), Tensor.full([1, 5, 7], 0.5)]) {
    it(`stay one mask for all items with a mask [${noise_mask.shape.join(", ")}]`, async () => {
      const some = { samples: { samples, noise_mask }, batch_index: 1, length: 2 };
      const part = (await invokeNode("LatentFromBatch", some)).result[0] as Latent;
      assert.deepEqual([part.samples.shape, part.noise_mask], [[2, 4, 2, 2], noise_mask]);
      const more = { samples: { samples, noise_mask }, amount: 2 };
      const all = (await invokeNode("RepeatLatentBatch", more)).result[0] as Latent;
      assert.deepEqual([all.samples.shape, all.noise_mask], [[6, 4, 2, 2], noise_mask]);
    });
  }
});
