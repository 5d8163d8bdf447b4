import { mirrored, upsideDown } from "../../../tensor/turned.js";
import { defineNode } from "../../define.js";
import { choice, latent } from "../../inputs.js";

const METHODS = ["x-axis: vertically", "y-axis: horizontally"] as const;

export const latentFlip = defineNode({
  key: "LatentFlip",
  displayName: "Flip Latent",
  category: "latent/transform",
  description: "Flips a latent vertically or horizontally.",
  inputs: { samples: latent(), flip_method: choice(METHODS) },
  outputs: { LATENT: "LATENT" },
  run: ({ samples, flip_method }) => {
    const flipped = flip_method === METHODS[0] ? upsideDown : mirrored;
    return { LATENT: { ...samples, samples: flipped(samples.samples, -2) } };
  },
});
