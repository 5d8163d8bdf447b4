import assert from "node:assert/strict";
import { type Conditioning, randn, Tensor } from "latentkit";
import { EncodedPicture } from "#src/host/checkpoint/clip-vision/model.js";
import { pictureLabel } from "#src/host/checkpoint/diffusion/picture-label.js";
import { refuses } from "../../../../helpers/errors.js";

const embedding = Tensor.full([1, 4], 2);
const state = Tensor.zeros([1, 257, 8]);
const pictureOf = (values: Tensor) => new EncodedPicture(state, state, values);
const entry = (...pictures: object[]): Conditioning[number] => [
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
    const first = pictureLabel(entry(added(pictureOf(embedding))), 12n)!;
    const noise = randn([1, 4], { seed: 2 }).data;
    for (const [i, value] of first.data.entries()) {
      assert.ok(Math.abs(value - 1) < 0.02);
      assert.ok(Math.abs(value - (1 + 0.5 * Math.sqrt(4.13e-5) * noise[i]!)) < 1e-4);
    }
    const last = pictureLabel(entry(added(pictureOf(embedding), 1)), 12n)!;
    for (const [i, value] of last.data.entries()) assert.ok(Math.abs(value - 0.5 * noise[i]!) < 0.02);
  });

  it("takes any seed, below the distance of the noise's too", () => {
    const below = pictureLabel(entry(added(pictureOf(embedding), 1)), 0n)!;
    const noise = randn([1, 4], { seed: 2n ** 64n - 10n }).data;
    for (const [i, value] of below.data.entries()) assert.ok(Math.abs(value - 0.5 * noise[i]!) < 0.02);
  });

  it("refuses several pictures, and those of other hosts", async () => {
    const own = added(pictureOf(embedding));
    await refuses(
      () => pictureLabel(entry(own, own)),
      "value.invalid",
      /expected one picture, .*, received 2 pictures\.$/,
    );
    await refuses(() => pictureLabel(entry(added({}))), "value.invalid", /CLIPVisionEncode of the same host/);
    const two = added(pictureOf(Tensor.zeros([2, 4])));
    await refuses(() => pictureLabel(entry(two)), "value.invalid", /expected one picture/);
  });
});
