import { interpolateDirections } from "../../../tensor/directions.js";
import { cycled } from "../../../tensor/parts.js";
import { defineNode } from "../../define.js";
import { float, latent } from "../../inputs.js";
import { fitted } from "../../latents.js";

// decision 208
export const latentInterpolate = defineNode({
  key: "LatentInterpolate",
  displayName: "Latent Interpolate",
  category: "latent/advanced",
  description: "Mixes direction and length of two latents' cells; a ratio of 1 is the first alone.",
  inputs: { samples1: latent(), samples2: latent(), ratio: float({ default: 1, min: 0, max: 1, step: 0.01 }) },
  outputs: { LATENT: "LATENT" },
  run: ({ samples1, samples2, ratio }) => {
    const { samples } = samples1;
    const second = cycled(fitted(samples2.samples, samples, "samples2"), samples.shape[0]!);
    return { LATENT: { ...samples1, samples: interpolateDirections(samples, second, ratio) } };
  },
});
