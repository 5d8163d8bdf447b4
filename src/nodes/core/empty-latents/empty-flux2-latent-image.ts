import { Tensor } from "../../../tensor/tensor.js";
import { inCells } from "../../cells.js";
import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";
import { latentBatch } from "./empty-latent-image.js";

/** Pixels along a side of a cell of Flux.2's latents, and their channels. */
const CELL = 16;
const CHANNELS = 128;
const side = () => inCells(int({ default: 1024, min: 16, max: 16384, step: CELL }), CELL);

export const emptyFlux2LatentImage = defineNode({
  key: "EmptyFlux2LatentImage",
  displayName: "Empty Flux 2 Latent",
  category: "latent",
  description: "A batch of empty latents of 128 channels, a cell for 16 x 16 pixels; sizes are in pixels.",
  inputs: { width: side(), height: side(), batch_size: latentBatch() },
  outputs: { LATENT: "LATENT" },
  run: ({ width, height, batch_size }) => ({
    LATENT: { samples: Tensor.zeros([batch_size, CHANNELS, Math.floor(height / CELL), Math.floor(width / CELL)]) },
  }),
});
