import assert from "node:assert/strict";
import { type Conditioning, modelSampling, Tensor } from "latentkit";
import {
  guidanceOf,
  pictureChannels,
  pooledOf,
  referencePatches,
  referencesOf,
} from "#src/host/checkpoint/flux-inputs.js";
import { fluxEmbeddings } from "#src/host/checkpoint/networks/flux/transformer.js";
import { refuses } from "../../../helpers/errors.js";

const entry = (options: Record<string, unknown>): Conditioning[number] => [Tensor.zeros([1, 2, 4]), options];
const run = (mask?: Tensor) => ({
  sampling: modelSampling("flux"),
  latent: Tensor.zeros([2, 16, 2, 3]),
  negative: [],
  steps: 1,
  mask,
});
/** Zeros of the VAE in the model's units. */
const BLACK = Math.fround(Math.fround(-0.1159) * 0.3611);

describe("referencesOf", () => {
  it("are none, or latents and where they stand", () => {
    assert.deepEqual(referencesOf(entry({})), { latents: [], places: "offset" });
    const latent = Tensor.zeros([1, 16, 2, 2]);
    const options = { reference_latents: [latent], reference_latents_method: "uxo" };
    assert.deepEqual(referencesOf(entry(options)), { latents: [latent], places: "uxo" });
  });

  it("refuse latents of other models and unknown places", async () => {
    const four = { reference_latents: [Tensor.zeros([1, 4, 2, 2])] };
    await refuses(() => referencesOf(entry(four)), "tensor.bad-shape", /reference latents \[B, 16, h, w\], received/);
    await refuses(() => referencesOf(entry({ reference_latents: 3 })), "tensor.bad-shape", /received 3/);
    const places = { reference_latents_method: "index_timestep_zero" };
    await refuses(() => referencesOf(entry(places)), "value.invalid", /received "index_timestep_zero"/);
  });

  it("are patches in the model's units after each other", () => {
    assert.equal(referencePatches({ latents: [], places: "offset" }), undefined);
    const latents = [Tensor.zeros([1, 16, 2, 2]), Tensor.full([2, 16, 3, 2], 0.1159)];
    const patches = referencePatches({ latents, places: "offset" })!;
    assert.deepEqual(patches.shape, [2, 3, 64]);
    assert.deepEqual([patches.data[0], Math.abs(patches.data[64]!) < 1e-8], [BLACK, true]);
  });
});

describe("guidanceOf", () => {
  const numbers = (options: Record<string, unknown>) => {
    const { guidance, guided } = guidanceOf(entry(options));
    return [[...guidance.data], ...guided.data];
  };

  it("is 3.5 unless an entry has another, or none", () => {
    const embedded = (value: number) => [...fluxEmbeddings([value]).data];
    assert.deepEqual(numbers({}), [embedded(3.5), 1]);
    assert.deepEqual(numbers({ guidance: 2 }), [embedded(2), 1]);
    assert.deepEqual(numbers({ guidance: null }), [embedded(0), 0]);
  });

  it("is refused where it is no number", async () => {
    for (const guidance of ["3", Number.NaN, Number.POSITIVE_INFINITY])
      await refuses(() => numbers({ guidance }), "value.invalid", /expected a guidance/);
  });
});

describe("pooledOf", () => {
  it("is zeros where there is none, and refused where it has another width", async () => {
    assert.deepEqual(pooledOf(entry({}), 3), Tensor.zeros([1, 3]));
    const pooled = Tensor.full([1, 3], 2);
    assert.equal(pooledOf(entry({ pooled_output: pooled }), 3), pooled);
    await refuses(() => pooledOf(entry({ pooled_output: pooled }), 4), "value.invalid", /pooled_output \[n, 4\]/);
  });
});

describe("pictureChannels", () => {
  it("are a black picture and a mask of ones where there are none", () => {
    const { data, shape } = pictureChannels(entry({}), run(), true);
    assert.deepEqual(shape, [2, 80, 2, 3]);
    assert.deepEqual([data[0], data[16 * 6 - 1], data[16 * 6], data.at(-1)], [BLACK, BLACK, 1, 1]);
    assert.deepEqual(pictureChannels(entry({}), run(), false).shape, [2, 16, 2, 3]);
  });

  it("hold a mask's pixels cell by cell, not rounded, in 64 channels", () => {
    const mask = Tensor.unfilled([1, 16, 24]);
    for (let i = 0; i < mask.size; i++) mask.data[i] = i / mask.size;
    const { data } = pictureChannels(entry({ concat_mask: mask }), run(), true);
    for (const [channel, row, column] of [
      [0, 0, 0],
      [13, 1, 2],
      [63, 1, 1],
    ] as const) {
      const pixel = (8 * row + (channel >> 3)) * 24 + 8 * column + (channel & 7);
      assert.equal(data[(16 + channel) * 6 + row * 3 + column], mask.data[pixel]);
    }
  });

  it("take the run's own mask, in its size of cells", () => {
    const { data } = pictureChannels(entry({}), run(Tensor.full([1, 2, 3], 0.25)), true);
    assert.ok(data.subarray(16 * 6, 80 * 6).every((value) => value === 0.25));
  });

  it("refuse pictures of other models", async () => {
    const four = entry({ concat_latent_image: Tensor.zeros([1, 4, 2, 3]) });
    await refuses(() => pictureChannels(four, run(), false), "tensor.bad-shape", /with 16 channels/);
    await refuses(() => pictureChannels(entry({ concat_mask: 1 }), run(), true), "tensor.bad-shape", /concat_mask/);
  });
});
