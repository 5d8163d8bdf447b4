import assert from "node:assert/strict";
import { join } from "node:path";
import { recogniseModelPatch } from "#src/host/checkpoint/families/model-patches.js";
import { refuses } from "../../../../helpers/errors.js";
import { root, temporaryFolder } from "../../../../helpers/folders.js";
import { headerOf } from "../../../../helpers/models/full-size.js";
import { unpackFolders } from "../../../../helpers/models/golden-graphs.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

describe("recogniseModelPatch", () => {
  const folder = temporaryFolder();

  it("knows the families of control nets, also under a prefix of all keys", async () => {
    unpackFolders(join(root, "test/golden/models-z-qwen"), ["model_patches"], folder());
    for (const [name, family] of [
      ["z_fun_controlnet_v1_tiny", "z-image"],
      ["q_diffsynth_tiny", "qwen-image"],
    ] as const) {
      const file = await weightFile(join(folder(), `model_patches/${name}.safetensors`));
      assert.equal(recogniseModelPatch(file).family, family);
      const wrapped = new Map([...file.weights].map(([key, weight]) => [`net.${key}`, weight]));
      assert.equal(recogniseModelPatch({ ...file, weights: wrapped }).family, family);
    }
  });

  it("refuses other files by name", () =>
    refuses(
      () => recogniseModelPatch(headerOf({ "a.lora_up.weight": [1, 1] })),
      "model.unsupported",
      /a control net of Z-Image \(Fun\) or Qwen-Image \(DiffSynth\), received a LoRA/,
    ));
});
