import { inputError } from "../../../base/errors.js";
import { composite, resizeBilinear } from "../../../tensor/ops.js";
import { maskSides } from "../../../tensor/shape.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { inCells } from "../../cells.js";
import { defineNode } from "../../define.js";
import { boolean, int, latent, mask } from "../../inputs.js";
import { planes } from "../../latents.js";

const offset = () => inCells(int({ default: 0, min: 0, max: 16384, step: 8 }));

export const latentCompositeMasked = defineNode({
  key: "LatentCompositeMasked",
  displayName: "Latent Composite Masked",
  category: "latent",
  description: "Pastes a latent onto another through a mask; offsets are in pixels.",
  inputs: {
    destination: latent(),
    source: latent(),
    x: offset(),
    y: offset(),
    resize_source: boolean({ default: false }),
    mask: mask({ optional: true }),
  },
  outputs: { LATENT: "LATENT" },
  run: ({ destination, source, x, y, resize_source, mask }) => {
    const { shape } = destination.samples;
    if (shape.length > 4 && mask === undefined)
      throw inputError("input.missing", { input: "mask" }, "a mask for a latent of five axes", mask);
    const to = planes(destination.samples);
    const from = sourceOf(to, source.samples, resize_source);
    const [, , height = 0, width = 0] = from.shape;
    const through = mask === undefined ? undefined : sized(mask, height, width);
    const pasted = composite(to, from, Math.floor(x / 8), Math.floor(y / 8), through);
    return { LATENT: { ...destination, samples: pasted.reshape(shape) } };
  },
});

function sourceOf(to: Tensor, samples: Tensor, resizes: boolean): Tensor {
  const from = planes(samples);
  const [, channels, height = 0, width = 0] = to.shape;
  if (from.shape[1] !== channels && from.shape[1] !== 1) {
    const expected = `a latent of ${channels} channels, as the destination, or one`;
    throw inputError("input.invalid", { input: "source" }, expected, samples);
  }
  return resizes ? resized(from, height, width) : from;
}

function resized(x: Tensor, height: number, width: number): Tensor {
  return x.shape.at(-2) === height && x.shape.at(-1) === width ? x : resizeBilinear(x, height, width);
}

/** Masks [N, height, width]. */
function sized(mask: Tensor, height: number, width: number): Tensor {
  return resized(mask.reshape(maskSides("mask", mask)), height, width);
}
