import { maskSides } from "../../../tensor/shape.js";
import { defineNode } from "../../define.js";
import { latent, mask } from "../../inputs.js";

export const setLatentNoiseMask = defineNode({
  key: "SetLatentNoiseMask",
  displayName: "Set Latent Noise Mask",
  category: "latent/inpaint",
  description: "Limits sampling to a mask; where it is 0 the latent stays unchanged.",
  inputs: { samples: latent(), mask: mask() },
  outputs: { LATENT: "LATENT" },
  run: ({ samples, mask }) => {
    const [count, height, width] = maskSides("mask", mask);
    return { LATENT: { ...samples, noise_mask: mask.reshape([count, 1, height, width]) } };
  },
});
