import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";

export const unetLoaderGguf = defineNode({
  key: "UnetLoaderGGUF",
  displayName: "Unet Loader (GGUF)",
  category: "advanced/loaders",
  description: "Loads a diffusion model of the host, as UNETLoader does.",
  inputs: { unet_name: fileName("diffusion_models") },
  outputs: { MODEL: "MODEL" },
  run: async ({ unet_name }, { host, signal, log }) => ({
    MODEL: await loadHostFile("diffusion_models", { unet_name }, { host, signal, log }),
  }),
});
