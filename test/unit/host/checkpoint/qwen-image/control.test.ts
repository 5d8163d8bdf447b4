import assert from "node:assert/strict";
import { join } from "node:path";
import { qwenImageControlPart } from "#src/host/checkpoint/qwen-image/control.js";
import { refuses } from "../../../../helpers/errors.js";
import { root, temporaryFolder } from "../../../../helpers/folders.js";
import { headerOf, type Shapes } from "../../../../helpers/models/full-size.js";
import { unpackFolders } from "../../../../helpers/models/golden-graphs.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

describe("qwenImageControlPart", () => {
  const folder = temporaryFolder();
  const open = () => {
    unpackFolders(join(root, "test/golden/models-z-qwen"), ["model_patches"], folder());
    return weightFile(join(folder(), "model_patches/q_diffsynth_tiny.safetensors"));
  };

  it("reads sizes and all weights", async () => {
    const file = await open();
    const { config, weights } = qwenImageControlPart(file);
    assert.deepEqual(config, { width: 64, channels: 16, blocks: 2 });
    assert.equal(weights.size, file.weights.size);
  });

  it("refuses those of repainting by name, and damaged ones with their key", async () => {
    const { weights } = await open();
    const shapes: Shapes = Object.fromEntries([...weights].map(([key, { shape }]) => [key, shape]));
    for (const [other, code, pattern] of [
      [{ ...shapes, "img_in.weight": [64, 68] }, "model.unsupported", /with 16 channels, received one with 17/],
      [{ ...shapes, "controlnet_blocks.1.x_rms.weight": [1] }, "model.invalid", /controlnet_blocks\.1\.x_rms\.weight/],
      [{ ...shapes, "controlnet_blocks.1.extra.weight": [1] }, "model.unsupported", /unknown weight/],
    ] as [Shapes, string, RegExp][])
      await refuses(() => qwenImageControlPart(headerOf(other)), code, pattern);
  });
});
