import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";

export const upscaleModelLoader = defineNode({
  key: "UpscaleModelLoader",
  displayName: "Load Upscale Model",
  category: "loaders",
  description: "Loads one of the host's models that enlarge images.",
  inputs: { model_name: fileName("upscale_models") },
  outputs: { UPSCALE_MODEL: "UPSCALE_MODEL" },
  run: async ({ model_name }, { host, signal, log }) => ({
    UPSCALE_MODEL: await loadHostFile("upscale_models", { model_name }, { host, signal, log }),
  }),
});
