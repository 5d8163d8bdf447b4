import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { buildClipVision } from "#src/host/checkpoint/clip-vision/build.js";
import { clipPixels } from "#src/host/checkpoint/clip-vision/model.js";
import { clipVisionPart } from "#src/host/checkpoint/clip-vision/recognise.js";
import { buildProjection } from "#src/host/checkpoint/ip-adapter/build.js";
import { ipAdapterPart } from "#src/host/checkpoint/ip-adapter/recognise.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { runBuilt } from "../../../../helpers/models/built.js";
import { adapterFile, adapterLayers, adapterPicture } from "../../../../helpers/models/golden-adapters.js";

const { image_proj, tensor } = adapterLayers();

describe("buildProjection", () => {
  const folder = temporaryFolder();
  for (const { adapter, encoder, image, tokens, cond, uncond, token_step } of image_proj)
    it(`makes the tokens of ${adapter} as the reference`, async () => {
      const vision = clipVisionPart(await adapterFile(`clip_vision/${encoder}`, folder()));
      const { projection } = ipAdapterPart(await adapterFile(`ipadapter/${adapter}`, folder()));
      const { kind, inputs } = projection.config;
      const black = Tensor.zeros([1, 224, 224, 3]);
      const pixels = [await adapterPicture(image), black].map((picture) => ({ pixels: clipPixels(picture, "center") }));
      const [picture, none] = await runBuilt(
        vision.weights,
        (network) => buildClipVision(network, vision.config),
        ...pixels,
      );
      const states =
        kind === "base"
          ? [picture!.embedding!, Tensor.zeros([1, inputs])]
          : [picture!.penultimate!, none!.penultimate!];
      const build = (network: Parameters<typeof buildProjection>[0]) => buildProjection(network, projection.config);
      const outputs = await runBuilt(projection.weights, build, ...states.map((state) => ({ state })));
      for (const [i, name] of [cond, uncond].entries()) {
        const made = outputs[i]!.tokens!;
        assert.equal(made.shape[1], tokens);
        const expected = tensor(name);
        const width = made.shape[2]!;
        const actual = [...made.data].filter((_, at) => Math.floor(at / width) % token_step === 0);
        assert.equal(actual.length, expected.size);
        const most = expected.data.reduce((largest, value) => Math.max(largest, Math.abs(value)), 1);
        const error = actual.reduce((worst, value, at) => Math.max(worst, Math.abs(value - expected.data[at]!)), 0);
        assert.ok(error <= 1e-5 * most, `${name}: ${error}`);
      }
    });
});
