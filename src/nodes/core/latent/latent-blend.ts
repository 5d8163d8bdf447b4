import { inputError } from "../../../base/errors.js";
import { axpy, scale } from "../../../tensor/ops.js";
import { cycled } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
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
    const second = fitted(samples2.samples, samples1.samples, "samples2", resizeBicubic);
    const [one = 0, two = 0] = [samples1.samples.shape[0], second.shape[0]];
    if (one !== two && one !== 1 && two !== 1)
      throw inputError("input.invalid", { input: "samples2" }, `a latent of ${one} items or one`, samples2.samples);
    const batch = one === 1 ? two : one;
    const [a, b] = [cycled(samples1.samples, batch), cycled(second, batch)];
    return { LATENT: { ...samples1, samples: axpy(scale(a, blend_factor), b, 1 - blend_factor) } };
  },
});

/** Positions and weights of the four inputs of an output: Keys' cubic with a = -0.75, half-pixel centres, edges clamped. */
function taps(side: number, length: number): { from: number; weight: number }[][] {
  const cubic = (t: number) =>
    t <= 1 ? (1.25 * t - 2.25) * t * t + 1 : t < 2 ? ((-0.75 * t + 3.75) * t - 6) * t + 3 : 0;
  return Array.from({ length }, (_, index) => {
    const centre = ((index + 0.5) * side) / length - 0.5;
    return [-1, 0, 1, 2].map((step) => {
      const at = Math.floor(centre) + step;
      return { from: Math.min(side - 1, Math.max(0, at)), weight: cubic(Math.abs(centre - at)) };
    });
  });
}

/** Resizes the last two axes: bicubic, align_corners false, no antialias. */
function resizeBicubic(x: Tensor, height: number, width: number): Tensor {
  const [ownHeight = 0, ownWidth = 0] = x.shape.slice(-2);
  const out = Tensor.unfilled([...x.shape.slice(0, -2), height, width]);
  const [down, across] = [taps(ownHeight, height), taps(ownWidth, width)];
  let to = 0;
  for (let plane = 0; plane < x.size; plane += ownHeight * ownWidth)
    for (const rows of down)
      for (const columns of across) {
        let sum = 0;
        for (const row of rows)
          for (const column of columns)
            sum += row.weight * column.weight * x.data[plane + row.from * ownWidth + column.from]!;
        out.data[to++] = sum;
      }
  return out;
}
