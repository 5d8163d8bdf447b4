import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";

export const modelPatchLoader = defineNode({
  key: "ModelPatchLoader",
  category: "advanced/loaders",
  description: "Loads one of the host's model patches, such as a ControlNet of Z-Image.",
  inputs: { name: fileName("model_patches") },
  outputs: { MODEL_PATCH: "MODEL_PATCH" },
  run: async ({ name }, { host, signal, log }) => ({
    MODEL_PATCH: await loadHostFile("model_patches", { name }, { host, signal, log }),
  }),
});
