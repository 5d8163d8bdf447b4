import assert from "node:assert/strict";
import { invokeNode, type Latent, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

describe("LatentConcat", () => {
  const one = { samples: Tensor.from([0, 1], [2, 1, 1, 1]), k: 1 };
  const two = { samples: Tensor.from([7], [1, 1, 1, 1]) };
  const concat = async (dim: string, samples2: object = two) =>
    ((await invokeNode("LatentConcat", { samples1: one, samples2, dim })).result[0] as Latent).samples;

  it("appends the second latent, its batch repeated, or puts it first", async () => {
    assertSameBits(await concat("x"), Tensor.from([0, 7, 1, 7], [2, 1, 1, 2]));
    assertSameBits(await concat("-x"), Tensor.from([7, 0, 7, 1], [2, 1, 1, 2]));
    assertSameBits(await concat("-y"), Tensor.from([7, 0, 7, 1], [2, 1, 2, 1]));
    assertSameBits(await concat("t"), Tensor.from([0, 7, 1, 7], [2, 2, 1, 1]));
  });

  it("refuses latents that differ elsewhere", async () => {
    const wide = { samples: Tensor.zeros([1, 1, 1, 2]) };
    await refuses(concat("y", wide), "input.invalid", /input "samples2": expected a latent that differs/);
    await refuses(concat("x", { samples: Tensor.zeros([1, 1, 1]) }), "input.invalid", /samples2/);
  });
});

describe("LatentCut", () => {
  const samples = { samples: Tensor.from([0, 1, 2, 3, 4, 5], [1, 1, 2, 3]), k: 1 };
  const cut = async (dim: string, index: number, amount: number) =>
    ((await invokeNode("LatentCut", { samples, dim, index, amount })).result[0] as Latent).samples;

  it("takes a part of an axis, cut at its end", async () => {
    assertSameBits(await cut("x", 1, 1), Tensor.from([1, 4], [1, 1, 2, 1]));
    assertSameBits(await cut("x", 1, 99), Tensor.from([1, 2, 4, 5], [1, 1, 2, 2]));
    assertSameBits(await cut("x", 99, 5), Tensor.from([2, 5], [1, 1, 2, 1]));
    assertSameBits(await cut("y", 1, 1), Tensor.from([3, 4, 5], [1, 1, 1, 3]));
    assertSameBits(await cut("t", 0, 1), samples.samples);
  });

  it("counts an index below 0 from the end", async () => {
    assertSameBits(await cut("x", -2, 1), Tensor.from([1, 4], [1, 1, 2, 1]));
    assertSameBits(await cut("x", -2, 9), Tensor.from([1, 2, 4, 5], [1, 1, 2, 2]));
    assertSameBits(await cut("y", -9, 1), Tensor.from([0, 1, 2], [1, 1, 1, 3]));
  });
});

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

describe("RebatchImages", () => {
  const images = (...values: number[]): Tensor =>
    Tensor.from(
      values.flatMap((value) => new Array(3).fill(value)),
      [values.length, 1, 1, 3],
    );
  const run = async (inputs: object) => (await invokeNode("RebatchImages", { ...inputs })).result[0] as Tensor[];
  const valuesOf = (batch: Tensor) => [...batch.data].filter((_, at) => at % 3 === 0);

  it("deals the images of all batches into batches of one size", async () => {
    const batches = await run({ images: [images(1, 2, 3), images(4), images(5)], batch_size: 2 });
    assert.deepEqual(batches.map(valuesOf), [[1, 2], [3, 4], [5]]);
    assert.deepEqual(batches[0]!.shape, [2, 1, 1, 3]);
    assert.deepEqual((await run({ images: images(1, 2), batch_size: [9] })).map(valuesOf), [[1, 2]]);
  });

  it("refuses images of different sizes in one batch", async () => {
    const mixed = [images(1), Tensor.zeros([1, 2, 1, 3])];
    await refuses(
      run({ images: mixed, batch_size: 2 }),
      "tensor.bad-shape",
      /RebatchImages, input "images": expected images of shape \[1, 1, 1, 3\] in one batch, received a tensor of shape \[1, 2, 1, 3\]/,
    );
    assert.equal((await run({ images: mixed, batch_size: 1 })).length, 2);
  });
});

describe("RebatchLatents", () => {
  const latent = (values: number[], more: object = {}): Latent => ({
    samples: Tensor.from(values, [values.length, 1, 1, 1]),
    ...more,
  });
  const run = async (latents: Latent[], batch_size: number) =>
    (await invokeNode("RebatchLatents", { latents, batch_size })).result[0] as Latent[];
  const valuesOf = ({ samples }: Latent) => [...samples.data];

  it("deals latents into batches of one size and counts their indices on", async () => {
    const batches = await run([latent([1, 2, 3]), latent([4], { batch_index: [7] }), latent([5])], 2);
    assert.deepEqual(batches.map(valuesOf), [[1, 2], [3, 4], [5]]);
    assert.deepEqual(
      batches.map(({ batch_index }) => batch_index),
      [[0, 1], [2, 7], [4]],
    );
    assert.ok(batches.every(({ noise_mask }) => noise_mask === undefined));
  });

  it("begins a new batch if sides differ", async () => {
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
