import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";

export const styleModelLoader = defineNode({
  key: "StyleModelLoader",
  displayName: "Load Style Model",
  category: "loaders",
  description: "Loads a style model of the host, which turns pictures into tokens of a prompt.",
  inputs: { style_model_name: fileName("style_models") },
  outputs: { STYLE_MODEL: "STYLE_MODEL" },
  run: async ({ style_model_name }, { host, signal, log }) => ({
    STYLE_MODEL: await loadHostFile("style_models", { style_model_name }, { host, signal, log }),
  }),
});
