import { weightedSum } from "../../../tensor/ops.js";
import { cycled } from "../../../tensor/parts.js";
import { defineNode } from "../../define.js";
import { latent } from "../../inputs.js";
import { fitted } from "../../latents.js";

export const latentAdd = defineNode({
  key: "LatentAdd",
  displayName: "Latent Add",
  category: "latent/advanced",
  description: "The sum of two latents; the second is resized to the first, its batch repeated or cut.",
  inputs: { samples1: latent(), samples2: latent() },
  outputs: { LATENT: "LATENT" },
  run: ({ samples1, samples2 }) => {
    const { samples } = samples1;
    const second = cycled(fitted(samples2.samples, samples, "samples2"), samples.shape[0]!);
    return {
      LATENT: {
        ...samples1,
        samples: weightedSum([
          [1, samples],
          [1, second],
        ]),
      },
    };
  },
});
