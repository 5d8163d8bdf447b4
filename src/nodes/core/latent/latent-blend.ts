import { inputError } from "../../../base/errors.js";
import { axpy, scale } from "../../../tensor/ops.js";
import { cycled } from "../../../tensor/parts.js";
import { defineNode } from "../../define.js";
import { float, latent } from "../../inputs.js";
import { fitted } from "../../latents.js";

export const latentBlend = defineNode({
  key: "LatentBlend",
  displayName: "Latent Blend",
  category: "_for_testing",
  description: "Mixes two latents; a factor of 1 is the first alone.",
  inputs: {
    samples1: latent(),
    samples2: latent(),
    blend_factor: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { LATENT: "LATENT" },
  run: ({ samples1, samples2, blend_factor }) => {
    const second = fitted(samples2.samples, samples1.samples, "samples2", "bicubic");
    const [one = 0, two = 0] = [samples1.samples.shape[0], second.shape[0]];
    if (one !== two && one !== 1 && two !== 1)
      throw inputError("input.invalid", { input: "samples2" }, `a latent of ${one} items or one`, samples2.samples);
    const batch = one === 1 ? two : one;
    const [a, b] = [cycled(samples1.samples, batch), cycled(second, batch)];
    return { LATENT: { ...samples1, samples: axpy(scale(a, blend_factor), b, 1 - blend_factor) } };
  },
});
