import { defineNode } from "../../define.js";
import { latent } from "../../inputs.js";
import { added } from "../../latents.js";

export const latentAdd = defineNode({
  key: "LatentAdd",
  displayName: "Latent Add",
  category: "latent/advanced",
  description: "The sum of two latents; the second is resized to the first, its batch repeated or cut.",
  inputs: { samples1: latent(), samples2: latent() },
  outputs: { LATENT: "LATENT" },
  run: ({ samples1, samples2 }) => ({ LATENT: added(samples1, samples2, 1) }),
});
