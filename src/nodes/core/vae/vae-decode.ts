import { defineNode } from "../../define.js";
import { latent, vae } from "../../inputs.js";

export const vaeDecode = defineNode({
  key: "VAEDecode",
  displayName: "VAE Decode",
  category: "latent",
  description: "Decodes latents to images.",
  inputs: { samples: latent(), vae: vae() },
  outputs: { IMAGE: "IMAGE" },
  run: async ({ samples, vae }) => ({ IMAGE: await vae.decode(samples.samples) }),
});
