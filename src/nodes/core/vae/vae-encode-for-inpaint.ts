import { roundHalfEven } from "../../../tensor/rounding.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { image, int, mask, vae } from "../../inputs.js";
import { inpaintImage } from "./inpaint-image.js";

export const vaeEncodeForInpaint = defineNode({
  key: "VAEEncodeForInpaint",
  displayName: "VAE Encode (for Inpainting)",
  category: "latent/inpaint",
  description: "Encodes images with grey where the mask is; sampling paints there, and a margin around it.",
  inputs: { pixels: image(), vae: vae(), mask: mask(), grow_mask_by: int({ default: 6, min: 0, max: 64, step: 1 }) },
  outputs: { LATENT: "LATENT" },
  run: async ({ pixels, vae, mask, grow_mask_by }) => {
    const image = inpaintImage(pixels, mask);
    const samples = await vae.encode(image.hidden);
    return { LATENT: { samples, noise_mask: grown(rounded(image.mask), grow_mask_by) } };
  },
});

function rounded(mask: Tensor): Tensor {
  const out = Tensor.unfilled(mask.shape);
  for (let at = 0; at < out.size; at++) out.data[at] = roundHalfEven(mask.data[at]!);
  return out;
}

/** Sums of the `side` x `side` values around each, clamped to 0 … 1; an even window has one more before than after. */
function grown(mask: Tensor, side: number): Tensor {
  if (side === 0) return mask;
  const [, , height = 0, width = 0] = mask.shape;
  const rows = Float64Array.from(mask.data);
  for (let from = 0; from < rows.length; from += width) windowSums(rows, from, width, 1, side);
  for (let from = 0; from < rows.length; from += height * width)
    for (let column = 0; column < width; column++) windowSums(rows, from + column, height, width, side);
  const out = Tensor.unfilled(mask.shape);
  for (let at = 0; at < out.size; at++) out.data[at] = Math.min(1, Math.max(0, rows[at]!));
  return out;
}

/** Replaces `count` values, `step` apart, by the sums of the windows around them; NaN counts as 0. */
function windowSums(values: Float64Array, from: number, count: number, step: number, side: number): void {
  const before = Math.ceil((side - 1) / 2);
  const sums = new Float64Array(count + 1);
  for (let at = 0; at < count; at++) sums[at + 1] = sums[at]! + (values[from + at * step]! || 0);
  for (let at = 0; at < count; at++) {
    const end = Math.max(0, Math.min(count, at - before + side));
    values[from + at * step] = sums[end]! - sums[Math.max(0, at - before)]!;
  }
}
