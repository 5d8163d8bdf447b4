import { firstChannels } from "../../../tensor/channels.js";
import { defineNode } from "../../define.js";
import { image, vae } from "../../inputs.js";

export const vaeEncode = defineNode({
  key: "VAEEncode",
  displayName: "VAE Encode",
  category: "latent",
  description: "Encodes the colours of images to latents; alpha is left out.",
  inputs: { pixels: image(), vae: vae() },
  outputs: { LATENT: "LATENT" },
  run: async ({ pixels, vae }, { log }) => ({
    LATENT: { samples: await vae.encode(firstChannels(pixels, 3), log) },
  }),
});
