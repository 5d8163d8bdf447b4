import assert from "node:assert/strict";
import { type Conditioning, modelSampling, randn, Tensor } from "latentkit";
import { EncodedPicture } from "#src/host/checkpoint/clip-vision/model.js";
import {
  inpaintChannels,
  type LabelSource,
  labelVectors,
  pictureLabel,
  pooledText,
  sizeLabel,
} from "#src/host/checkpoint/diffusion/conditioning.js";
import { refuses } from "../../../../helpers/errors.js";

const latent = randn([2, 4, 4, 4], { seed: 1 });
const run = { sampling: modelSampling("sd15"), latent, negative: [], steps: 1 };
const entry = (options: object) => [Tensor.zeros([1, 77, 8]), options] as never;
const channel = ({ data }: Tensor, index: number) => [...data.slice(index * 16, (index + 1) * 16)];

describe("inpaintChannels", () => {
  it("repaint everything, over grey, without a mask", () => {
    const channels = inpaintChannels(entry({}), run);
    assert.deepEqual([...channels.shape], [2, 5, 4, 4]);
    const grey = [0.8223, -0.6876, 0.6364, 0.138].map(Math.fround);
    assert.deepEqual(channel(channels, 0), new Array(16).fill(1));
    for (const [i, value] of grey.entries()) assert.deepEqual(channel(channels, i + 1), new Array(16).fill(value));
  });

  it("are mask and latent of the run, the mask rounded", () => {
    const mask = Tensor.from(
      Array.from({ length: 16 }, (_, i) => i / 16),
      [1, 4, 4],
    );
    const channels = inpaintChannels(entry({}), { ...run, mask });
    // half rounds to even
    assert.deepEqual(
      channel(channels, 0),
      Array.from({ length: 16 }, (_, i) => (i > 8 ? 1 : 0)),
    );
    assert.deepEqual(channel(channels, 1), [...latent.data.slice(0, 16)]);
    assert.deepEqual(channel(channels, 6), [...latent.data.slice(64, 80)]);
  });

  it("are an entry's own, in the model's units and at the latent's size", () => {
    const own = { concat_mask: Tensor.full([1, 1, 32, 32], 1), concat_latent_image: Tensor.full([1, 4, 8, 8], 2) };
    const channels = inpaintChannels(entry(own), run);
    assert.deepEqual(channel(channels, 0), new Array(16).fill(1));
    const { scaleFactor } = run.sampling.latentFormat;
    for (const value of channel(channels, 3)) assert.ok(Math.abs(value - 2 * scaleFactor) < 1e-6);
  });

  it("refuse anything but a tensor of their shapes", async () => {
    const mask = Tensor.full([1, 4, 4], 1);
    await refuses(() => inpaintChannels(entry({ concat_mask: 1 }), run), "tensor.bad-shape", /concat_mask/);
    const wide = { concat_mask: mask, concat_latent_image: Tensor.zeros([1, 16, 4, 4]) };
    await refuses(() => inpaintChannels(entry(wide), run), "tensor.bad-shape", /with 4 channels/);
  });
});

const POOLED = 3;
const pooled = Tensor.from([1, 2, 3], [1, POOLED]);
const base: LabelSource = { kind: "sdxl", cells: [64, 96], isNegative: false };
const refiner: LabelSource = { ...base, kind: "sdxl-refiner" };

/** The numbers of a label, from the first two angles of each: the first frequency is 1. */
function numbersOf({ data }: Tensor): number[] {
  const numbers: number[] = [];
  for (let at = POOLED; at < data.length; at += 256) {
    // cosines first; the last frequency is near 1 / 10,000, so its angle is the number's without a turn
    const slowest = 10_000 ** (-127 / 128);
    numbers.push(Math.round(Math.atan2(data[at + 255]!, data[at + 127]!) / slowest / 0.5) * 0.5);
    assert.ok(Math.abs(data[at]! - Math.cos(numbers.at(-1)!)) < 1e-5);
    assert.ok(Math.abs(data[at + 128]! - Math.sin(numbers.at(-1)!)) < 1e-5);
  }
  return numbers;
}

const label = (options: object, source: LabelSource) => {
  const width = POOLED + (source.kind === "sdxl" ? 6 : 5) * 256;
  const entry = [Tensor.zeros([1, 77, 8]), { pooled_output: pooled, ...options }] as never;
  return labelVectors(sizeLabel(entry, source, width));
};

describe("sizeLabel", () => {
  it("has the pooled text, then the sizes of the latent if the prompt names none", () => {
    const whole = label({}, base);
    assert.deepEqual([...whole.data.slice(0, POOLED)], [1, 2, 3]);
    assert.deepEqual(numbersOf(whole), [512, 768, 0, 0, 512, 768]);
  });

  it("has the prompt's own sizes, height first; the target is the size where it is not named", () => {
    const own = { width: 1024, height: 832, crop_w: 8, crop_h: 16 };
    assert.deepEqual(numbersOf(label(own, base)), [832, 1024, 16, 8, 832, 1024]);
    const target = { ...own, target_width: 640, target_height: 320 };
    assert.deepEqual(numbersOf(label(target, base)), [832, 1024, 16, 8, 320, 640]);
  });

  it("has a score for the refiner, lower for what it moves away from", () => {
    assert.deepEqual(numbersOf(label({}, refiner)), [512, 768, 0, 0, 6]);
    assert.deepEqual(numbersOf(label({}, { ...refiner, isNegative: true })), [512, 768, 0, 0, 2.5]);
    assert.deepEqual(numbersOf(label({ aesthetic_score: 9 }, refiner)), [512, 768, 0, 0, 9]);
  });

  it("refuses another pooled text and sizes that are not numbers", async () => {
    const wide = Tensor.zeros([1, 4]);
    await refuses(() => label({ pooled_output: wide }, base), "value.invalid", /expected pooled_output \[n, 3\]/);
    await refuses(() => label({ pooled_output: undefined }, base), "value.invalid", /received undefined/);
    await refuses(() => label({ crop_w: "8" }, base), "value.invalid", /conditioning, crop_w: expected a number/);
  });
});

describe("pooledText", () => {
  it("is zeros if there is none, and refused if it has another width", async () => {
    assert.deepEqual(pooledText(entry({}), 3), Tensor.zeros([1, 3]));
    const pooled = Tensor.full([1, 3], 2);
    assert.equal(pooledText(entry({ pooled_output: pooled }), 3), pooled);
    await refuses(() => pooledText(entry({ pooled_output: pooled }), 4), "value.invalid", /pooled_output \[n, 4\]/);
  });
});

const embedding = Tensor.full([1, 4], 2);
const state = Tensor.zeros([1, 257, 8]);
const pictureOf = (values: Tensor) => new EncodedPicture(state, state, values);
const picturesOf = (...pictures: object[]): Conditioning[number] => [
  Tensor.zeros([1, 77, 8]),
  { unclip_conditioning: pictures },
];
const added = (picture: unknown, noise_augmentation = 0) => ({
  clip_vision_output: picture,
  strength: 0.5,
  noise_augmentation,
});

describe("pictureLabel", () => {
  it("is absent without a picture", () => {
    assert.equal(pictureLabel([Tensor.zeros([1, 77, 8]), {}]), undefined);
  });

  it("is the embedding with little noise at level 0, and noise alone at the last", () => {
    const first = pictureLabel(picturesOf(added(pictureOf(embedding))), 12n)!;
    const noise = randn([1, 4], { seed: 2 }).data;
    for (const [i, value] of first.data.entries()) {
      assert.ok(Math.abs(value - 1) < 0.02);
      assert.ok(Math.abs(value - (1 + 0.5 * Math.sqrt(4.13e-5) * noise[i]!)) < 1e-4);
    }
    const last = pictureLabel(picturesOf(added(pictureOf(embedding), 1)), 12n)!;
    for (const [i, value] of last.data.entries()) assert.ok(Math.abs(value - 0.5 * noise[i]!) < 0.02);
  });

  it("takes any seed, below the distance of the noise's too", () => {
    const below = pictureLabel(picturesOf(added(pictureOf(embedding), 1)), 0n)!;
    const noise = randn([1, 4], { seed: 2n ** 64n - 10n }).data;
    for (const [i, value] of below.data.entries()) assert.ok(Math.abs(value - 0.5 * noise[i]!) < 0.02);
  });

  it("refuses several pictures, and those of other hosts", async () => {
    const own = added(pictureOf(embedding));
    await refuses(
      () => pictureLabel(picturesOf(own, own)),
      "value.invalid",
      /expected one picture, .*, received 2 pictures\.$/,
    );
    await refuses(() => pictureLabel(picturesOf(added({}))), "value.invalid", /CLIPVisionEncode of the same host/);
    const two = added(pictureOf(Tensor.zeros([2, 4])));
    await refuses(() => pictureLabel(picturesOf(two)), "value.invalid", /expected one picture/);
  });
});
