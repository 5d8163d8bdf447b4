import { LATENT_METHODS, resizeLatent } from "../../../tensor/resize.js";
import { defineNode } from "../../define.js";
import { choice, float, latent } from "../../inputs.js";
import { scaledSides } from "../../scaled-sides.js";

const KEY = "LatentUpscaleBy";

export const latentUpscaleBy = defineNode({
  key: KEY,
  displayName: "Upscale Latent By",
  category: "latent",
  description: "Resizes a latent by a factor.",
  inputs: {
    samples: latent(),
    upscale_method: choice(LATENT_METHODS),
    scale_by: float({ default: 1.5, min: 0.01, max: 8, step: 0.01 }),
  },
  outputs: { LATENT: "LATENT" },
  run: ({ samples: from, upscale_method: method, scale_by }) => {
    const [height, width] = [from.samples.shape.at(-2)!, from.samples.shape.at(-1)!];
    const sides = scaledSides({ node: KEY, input: "scale_by" }, [height, width], scale_by);
    return { LATENT: { ...from, samples: resizeLatent(from.samples, { method, ...sides }) } };
  },
});
