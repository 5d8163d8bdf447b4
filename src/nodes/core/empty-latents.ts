import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { int } from "../inputs.js";
import { CELL, inCells } from "../latents.js";

/** Input for a side of an image in pixels, in ComfyUI's limits; a latent cell has eight pixels. */
export const latentSide = () => inCells(int({ default: 512, min: 16, max: 16384, step: CELL }));

export const latentBatch = () => int({ default: 1, min: 1, max: 4096 });

const sd3Side = () => inCells(int({ default: 1024, min: 16, max: 16384, step: 16 }));

/** Pixels along a side of a cell of Flux.2's latents. */
const FLUX2_CELL = 16;

const flux2Side = () => inCells(int({ default: 1024, min: 16, max: 16384, step: FLUX2_CELL }), FLUX2_CELL);

export const emptyLatentNodes = [
  defineNode({
    key: "EmptyLatentImage",
    displayName: "Empty Latent Image",
    category: "latent",
    description: "A batch of empty latents of four channels; sizes are in pixels.",
    inputs: { width: latentSide(), height: latentSide(), batch_size: latentBatch() },
    outputs: { LATENT: "LATENT" },
    run: ({ width, height, batch_size }) => ({ LATENT: { samples: emptyLatent(batch_size, 4, height, width) } }),
  }),
  defineNode({
    key: "EmptySD3LatentImage",
    displayName: "Empty SD3 Latent Image",
    category: "latent/sd3",
    description: "A batch of empty latents of 16 channels; sizes are in pixels.",
    inputs: { width: sd3Side(), height: sd3Side(), batch_size: latentBatch() },
    outputs: { LATENT: "LATENT" },
    run: ({ width, height, batch_size }) => ({ LATENT: { samples: emptyLatent(batch_size, 16, height, width) } }),
  }),
  defineNode({
    key: "EmptyFlux2LatentImage",
    displayName: "Empty Flux 2 Latent",
    category: "latent",
    description: "A batch of empty latents of 128 channels, a cell for 16 x 16 pixels; sizes are in pixels.",
    inputs: { width: flux2Side(), height: flux2Side(), batch_size: latentBatch() },
    outputs: { LATENT: "LATENT" },
    run: ({ width, height, batch_size }) => {
      const [rows, columns] = [Math.floor(height / FLUX2_CELL), Math.floor(width / FLUX2_CELL)];
      return { LATENT: { samples: Tensor.zeros([batch_size, 128, rows, columns]) } };
    },
  }),
] as const;

/** Zeros [batch, channels, height / 8, width / 8], rounded down; sizes in pixels. */
export const emptyLatent = (batch: number, channels: number, height: number, width: number): Tensor =>
  Tensor.zeros([batch, channels, Math.floor(height / CELL), Math.floor(width / CELL)]);
