import assert from "node:assert/strict";
import { join } from "node:path";
import { placedWeights } from "#src/host/checkpoint/weights/stored.js";
import { zImageControlPart } from "#src/host/checkpoint/z-image/control.js";
import { refuses } from "../../../../helpers/errors.js";
import { root, temporaryFolder } from "../../../../helpers/folders.js";
import { headerOf, type Shapes } from "../../../../helpers/models/full-size.js";
import { unpackFolders } from "../../../../helpers/models/golden-graphs.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

describe("zImageControlPart", () => {
  const folder = temporaryFolder();
  const open = async (version: 1 | 2) => {
    unpackFolders(join(root, "test/golden/models-z-qwen"), ["model_patches"], folder());
    return weightFile(join(folder(), `model_patches/z_fun_controlnet_v${version}_tiny.safetensors`));
  };

  it("reads both versions", async () => {
    for (const version of [1, 2] as const) {
      const file = await open(version);
      const { config, weights } = zImageControlPart(file);
      assert.deepEqual(config, {
        width: 48,
        heads: 3,
        headSize: 16,
        mlp: 128,
        timeWidth: 32,
        layers: 2,
        refiners: 2,
        channels: version === 1 ? 16 : 33,
        guidesRefiners: version === 2,
      });
      assert.equal([...placedWeights(weights)].length, file.weights.size);
    }
  });

  it("refuses other files by name, and damaged ones with their key", async () => {
    const { weights } = await open(1);
    const shapes: Shapes = Object.fromEntries([...weights].map(([key, { shape }]) => [key, shape]));
    const embedder = "control_all_x_embedder.2-1.weight";
    for (const [other, code, pattern] of [
      [{ ...shapes, [embedder]: [48, 100] }, "model.unsupported", /with 16 or 33 channels, received one with 25/],
      [{ ...shapes, "control_layers.1.after_proj.bias": [47] }, "model.invalid", /control_layers\.1\.after_proj\.bias/],
    ] as [Shapes, string, RegExp][])
      await refuses(() => zImageControlPart(headerOf(other)), code, pattern);
  });
});
