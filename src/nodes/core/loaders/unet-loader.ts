import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";
import { choice } from "../../inputs.js";

export const unetLoader = defineNode({
  key: "UNETLoader",
  displayName: "Load Diffusion Model",
  category: "advanced/loaders",
  description: "Loads a diffusion model of the host, without CLIP and VAE.",
  inputs: {
    unet_name: fileName("diffusion_models"),
    weight_dtype: choice(["default", "fp8_e4m3fn", "fp8_e4m3fn_fast", "fp8_e5m2"], {
      tooltip: "No effect: weights keep their own type.",
    }),
  },
  outputs: { MODEL: "MODEL" },
  run: async ({ unet_name, weight_dtype }, { host, signal, log }) => ({
    MODEL: await loadHostFile("diffusion_models", { unet_name }, { host, signal, log }, { weight_dtype }),
  }),
});
