import assert from "node:assert/strict";
import { buildControlNet } from "#src/host/checkpoint/networks/controlnet.js";
import { controlNetPart } from "#src/host/checkpoint/recognition/controlnet.js";
import { levelsOfLdm, renaming, unetModules } from "#src/host/checkpoint/weights/diffusers-names.js";
import { listedNetwork } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { goldenNames, isWholeSet, unpackModel } from "../../../../helpers/models/golden.js";
import { recogniseStableDiffusion } from "../../../../helpers/models/recognised.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

/** Shapes of the ControlNet that belongs to a full-size checkpoint. */
async function shapesFor(name: "sd1" | "sd2" | "sdxl"): Promise<Shapes> {
  const { unet } = await recogniseStableDiffusion(headerOf(fullSizeShapes()[name]), async () => new Float32Array(320));
  const network = listedNetwork();
  buildControlNet(network, unet.config);
  return Object.fromEntries(network.listed);
}

describe("controlNetPart", () => {
  const folder = temporaryFolder();

  const names = goldenNames("controlnet");
  it("has the golden files at hand", () => assert.deepEqual(names, isWholeSet ? ["sd1_control"] : []));

  for (const name of names)
    it(`reads the golden ${name}`, async () => {
      const file = await weightFile(unpackModel(`controlnet/${name}`, folder()));
      const { config, weights, isDifference } = controlNetPart(file);
      assert.deepEqual([config.modelChannels, config.contextDim, config.input.length], [32, 64, 12]);
      assert.deepEqual([config.heads, config.middle!.depth], [{ count: 8 }, 1]);
      assert.deepEqual([weights.size, isDifference], [file.weights.size, false]);
    });

  it("reads nets of each family, with and without prefix and in diffusers' names", async () => {
    for (const name of ["sd1", "sd2", "sdxl"] as const) {
      const shapes = await shapesFor(name);
      const plain = controlNetPart(headerOf(shapes));
      const prefixed = withKeys({ ...shapes, difference: [] }, (key) => `control_model.${key}`);
      const difference = controlNetPart(headerOf(prefixed));
      assert.deepEqual([difference.config, difference.isDifference], [plain.config, true]);
      const toDiffusers = renaming(unetModules(levelsOfLdm(Object.keys(shapes))), 0);
      const diffusers = withKeys(shapes, (key) => toDiffusers(key) ?? key);
      assert.ok("controlnet_mid_block.weight" in diffusers);
      assert.deepEqual(controlNetPart(headerOf(diffusers)).config, plain.config);
    }
  });

  it("refuses other nets by name, and damaged ones", async () => {
    const shapes = await shapesFor("sdxl");
    const cases: [Shapes, string, RegExp][] = [
      [{ ...shapes, task_embedding: [6, 320] }, "model.unsupported", /several kinds of pictures/],
      [{ lora_controlnet: [] }, "model.unsupported", /Control-LoRA/],
      [fullSizeShapes().sd1, "model.unsupported", /received a Stable Diffusion checkpoint/],
      [{ "controlnet_blocks.0.weight": [1, 1] }, "model.unsupported", /ControlNet of Flux/],
      [{ ...shapes, "input_blocks.0.0.weight": [320, 9, 3, 3] }, "model.unsupported", /9 input channels/],
      [{ ...shapes, "zero_convs.9.0.weight": [1, 1, 1, 1] }, "model.unsupported", /"zero_convs\.9\.0\.weight"/],
      [{ ...shapes, "zero_convs.2.0.bias": [1] }, "model.invalid", /"zero_convs\.2\.0\.bias" of shape \[320\]/],
    ];
    for (const [each, code, pattern] of cases) await refuses(() => controlNetPart(headerOf(each)), code, pattern);
  });
});
