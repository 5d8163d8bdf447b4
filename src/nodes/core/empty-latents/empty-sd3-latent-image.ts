import { inCells } from "../../cells.js";
import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";
import { emptyLatent, latentBatch } from "./empty-latent-image.js";

const side = () => inCells(int({ default: 1024, min: 16, max: 16384, step: 16 }));

export const emptySd3LatentImage = defineNode({
  key: "EmptySD3LatentImage",
  displayName: "Empty SD3 Latent Image",
  category: "latent/sd3",
  description: "A batch of empty latents of 16 channels; sizes are in pixels.",
  inputs: { width: side(), height: side(), batch_size: latentBatch() },
  outputs: { LATENT: "LATENT" },
  run: ({ width, height, batch_size }) => ({ LATENT: { samples: emptyLatent(batch_size, 16, height, width) } }),
});
