import { firstChannels } from "../../../tensor/channels.js";
import { warnOfCut } from "../../cells.js";
import { defineNode } from "../../define.js";
import { image, vae } from "../../inputs.js";

export const vaeEncode = defineNode({
  key: "VAEEncode",
  displayName: "VAE Encode",
  category: "latent",
  description: "Encodes the colours of images to latents; alpha is left out.",
  inputs: { pixels: image(), vae: vae() },
  outputs: { LATENT: "LATENT" },
  run: async ({ pixels, vae }, { log }) => {
    const samples = await vae.encode(firstChannels(pixels, 3), log);
    warnOfCut(pixels, "pixels", log);
    return { LATENT: { samples } };
  },
});
