import { Tensor } from "../../../tensor/tensor.js";
import { inCells } from "../../cells.js";
import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";

/** Input for a side of an image in pixels, in ComfyUI's limits; a latent cell has eight pixels. */
export const latentSide = () => inCells(int({ default: 512, min: 16, max: 16384, step: 8 }));
export const latentBatch = () => int({ default: 1, min: 1, max: 4096 });

/** Zeros [batch, channels, height / 8, width / 8], rounded down; sizes in pixels. */
export const emptyLatent = (batch: number, channels: number, height: number, width: number): Tensor =>
  Tensor.zeros([batch, channels, Math.floor(height / 8), Math.floor(width / 8)]);

export const emptyLatentImage = defineNode({
  key: "EmptyLatentImage",
  displayName: "Empty Latent Image",
  category: "latent",
  description: "A batch of empty latents of four channels; sizes are in pixels.",
  inputs: { width: latentSide(), height: latentSide(), batch_size: latentBatch() },
  outputs: { LATENT: "LATENT" },
  run: ({ width, height, batch_size }) => ({ LATENT: { samples: emptyLatent(batch_size, 4, height, width) } }),
});
