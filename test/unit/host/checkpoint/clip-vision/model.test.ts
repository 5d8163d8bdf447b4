import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { buildClipVision } from "#src/host/checkpoint/clip-vision/build.js";
import { clipPixels } from "#src/host/checkpoint/clip-vision/model.js";
import { clipVisionPart } from "#src/host/checkpoint/clip-vision/recognise.js";
import { narrowed } from "#src/tensor/parts.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { adapterFile, adapterLayers, adapterPicture, sampled } from "../../../../helpers/models/golden-adapters.js";

const { vision, preprocess, tensor } = adapterLayers();
const pictureOf = async (name: string | null) =>
  name === null ? Tensor.zeros([1, 224, 224, 3]) : adapterPicture(name);

/** Every `step`-th token of [1, tokens, C]. */
const tokensOf = (x: Tensor, step: number): number[] => {
  const width = x.shape[2]!;
  return [...x.data].filter((_, i) => Math.floor(i / width) % step === 0);
};

function assertClose(actual: readonly number[], expected: Tensor, name: string): void {
  assert.equal(actual.length, expected.size, name);
  const most = expected.data.reduce((largest, value) => Math.max(largest, Math.abs(value)), 1);
  const error = actual.reduce((worst, value, i) => Math.max(worst, Math.abs(value - expected.data[i]!)), 0);
  assert.ok(error <= 1e-5 * most, `${name}: ${error} of ${most}`);
}

describe("clipPixels", () => {
  for (const { image, crop, pixels, step } of preprocess)
    it(`prepares ${image}, ${crop}, as the reference`, async () => {
      const expected = tensor(pixels);
      const actual = sampled(clipPixels(await adapterPicture(image), crop), 2, step);
      assert.equal(actual.length, expected.size);
      const errors = actual.map((value, i) => Math.abs(value - expected.data[i]!));
      assert.ok(Math.max(...errors) <= 2e-2);
      assert.ok(errors.filter((error) => error > 1e-5).length <= 0.005 * errors.length);
    });

  it("takes the middle of a very long picture without the rest", () => {
    const { shape, data } = clipPixels(Tensor.full([1, 1, 40_000, 3], 0), "center");
    assert.deepEqual([...shape], [1, 3, 224, 224]);
    assert.ok(Math.abs(data[0]! + 0.48145466 / 0.26862954) < 1e-6);
  });

  it("refuses pictures without pixels or colours", async () => {
    await refuses(() => clipPixels(Tensor.zeros([1, 0, 4, 3]), "center"), "tensor.bad-shape", /at least 1 x 1 pixels/);
    await refuses(() => clipPixels(Tensor.zeros([1, 4, 4, 1]), "none"), "tensor.bad-shape", /at least 3 channels/);
  });
});

describe("buildClipVision", () => {
  const folder = temporaryFolder();
  const encoders = [...new Set(vision.map(({ encoder }: { encoder: string }) => encoder))] as string[];
  for (const encoder of encoders)
    it(`computes ${encoder} as the reference`, async () => {
      const { config, weights } = clipVisionPart(await adapterFile(`clip_vision/${encoder}`, folder()));
      const cases = vision.filter((each: { encoder: string }) => each.encoder === encoder);
      assert.deepEqual([config.layers, config.heads], [cases[0].layers, cases[0].heads]);
      const feeds: { pixels: Tensor }[] = [];
      for (const { image, crop } of cases) feeds.push({ pixels: clipPixels(await pictureOf(image), crop) });
      const outputs = await runBuilt(weights, (network) => buildClipVision(network, config), ...feeds);
      for (const [i, each] of cases.entries()) {
        const { embedding, penultimate, last } = outputs[i]!;
        assertClose([...embedding!.data], tensor(each.image_embeds), each.image_embeds);
        assertClose(tokensOf(penultimate!, each.token_step), tensor(each.penultimate), each.penultimate);
        if (each.last !== undefined) assertClose([...narrowed(last!, 1, 0, 2).data], tensor(each.last), each.last);
      }
    });
});
