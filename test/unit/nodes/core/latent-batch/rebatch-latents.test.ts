import assert from "node:assert/strict";
import { invokeNode, type Latent, Tensor } from "latentkit";

const latent = (values: number[], more: object = {}): Latent => ({
  samples: Tensor.from(values, [values.length, 1, 1, 1]),
  ...more,
});
const run = async (latents: Latent[], batch_size: number) =>
  (await invokeNode("RebatchLatents", { latents, batch_size })).result[0] as Latent[];
const valuesOf = ({ samples }: Latent) => [...samples.data];

describe("RebatchLatents", () => {
  it("deals latents into batches of one size and counts their indices on", async () => {
    const batches = await run([latent([1, 2, 3]), latent([4], { batch_index: [7] }), latent([5])], 2);
    assert.deepEqual(batches.map(valuesOf), [[1, 2], [3, 4], [5]]);
    assert.deepEqual(
      batches.map(({ batch_index }) => batch_index),
      [[0, 1], [2, 7], [4]],
    );
    assert.ok(batches.every(({ noise_mask }) => noise_mask === undefined));
  });

  it("begins a new batch where sides differ", async () => {
    const wide = { samples: Tensor.zeros([2, 1, 1, 2]) };
    const batches = await run([latent([1, 2, 3]), wide, latent([4])], 2);
    assert.deepEqual(
      batches.map(({ samples }) => samples.shape),
      [
        [2, 1, 1, 1],
        [1, 1, 1, 1],
        [2, 1, 1, 2],
        [1, 1, 1, 1],
      ],
    );
  });

  it("resizes masks to pixels, repeats them, and leaves those of ones out", async () => {
    const half = Tensor.full([1, 4, 4], 0.5);
    const batches = await run([latent([1, 2], { noise_mask: half }), latent([3, 4])], 3);
    assert.deepEqual(batches[0]!.noise_mask!.shape, [3, 1, 8, 8]);
    const means = [0, 64, 128].map((at) => batches[0]!.noise_mask!.data[at]);
    assert.deepEqual(means, [0.5, 0.5, 1]);
    assert.equal(batches[1]!.noise_mask, undefined);
    const ones = await run([latent([1], { noise_mask: Tensor.full([1, 8, 8], 1) })], 1);
    assert.equal(ones[0]!.noise_mask, undefined);
  });
});
