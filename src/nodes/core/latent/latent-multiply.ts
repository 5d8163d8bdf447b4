import { scale } from "../../../tensor/ops.js";
import { defineNode } from "../../define.js";
import { float, latent } from "../../inputs.js";

export const latentMultiply = defineNode({
  key: "LatentMultiply",
  displayName: "Latent Multiply",
  category: "latent/advanced",
  description: "A latent times a number.",
  inputs: { samples: latent(), multiplier: float({ default: 1, min: -10, max: 10, step: 0.01 }) },
  outputs: { LATENT: "LATENT" },
  run: ({ samples, multiplier }) => ({ LATENT: { ...samples, samples: scale(samples.samples, multiplier) } }),
});
