import { roundHalfEven } from "../../../tensor/rounding.js";
import { Tensor } from "../../../tensor/tensor.js";
import { warnOfCut } from "../../cells.js";
import { defineNode } from "../../define.js";
import { image, int, mask, vae } from "../../inputs.js";
import { inpaintImage } from "./inpaint-image.js";

export const vaeEncodeForInpaint = defineNode({
  key: "VAEEncodeForInpaint",
  displayName: "VAE Encode (for Inpainting)",
  category: "latent/inpaint",
  description: "Encodes images with the masked area greyed out; the noise mask covers it and a margin.",
  inputs: { pixels: image(), vae: vae(), mask: mask(), grow_mask_by: int({ default: 6, min: 0, max: 64, step: 1 }) },
  outputs: { LATENT: "LATENT" },
  run: async ({ pixels, vae, mask, grow_mask_by }, { log }) => {
    const image = inpaintImage(pixels, mask);
    warnOfCut(pixels, "pixels", log);
    const samples = await vae.encode(image.hidden, log);
    return { LATENT: { samples, noise_mask: grown(rounded(image.mask), grow_mask_by) } };
  },
});

function rounded(mask: Tensor): Tensor {
  const out = Tensor.unfilled(mask.shape);
  const [from, into] = [mask.data, out.data];
  for (let at = 0; at < into.length; at++) into[at] = roundHalfEven(from[at]!);
  return out;
}

/** Values beyond it act as this, so that sums are exact. */
const MOST = 2 ** 31;

/** Sums of the `side` x `side` values around each, clamped to 0 … 1; NaN counts as 0. */
function grown(mask: Tensor, side: number): Tensor {
  if (side === 0) return mask;
  const [, , height = 0, width = 0] = mask.shape;
  const values = Float64Array.from(mask.data);
  for (let at = 0; at < values.length; at++) values[at] = Math.min(MOST, Math.max(-MOST, values[at]! || 0));
  const sums = windowSums(windowSums(values, width, 1, side), height, width, side);
  const out = Tensor.unfilled(mask.shape);
  const into = out.data;
  for (let at = 0; at < into.length; at++) into[at] = Math.min(1, Math.max(0, sums[at]!));
  return out;
}

/** Sums of `side` blocks of `inner` values around each of `length`; an even window has one more before than after. */
function windowSums(values: Float64Array, length: number, inner: number, side: number): Float64Array {
  const out = new Float64Array(values.length);
  const before = Math.ceil((side - 1) / 2);
  const sums = new Float64Array(inner);
  for (let start = 0; start < values.length; start += length * inner) {
    sums.fill(0);
    for (let at = before + 1 - side; at < length; at++) {
      const [enters, leaves] = [at - before + side - 1, at - before - 1];
      for (let i = 0; i < inner; i++) {
        if (enters < length) sums[i]! += values[start + enters * inner + i]!;
        if (leaves >= 0) sums[i]! -= values[start + leaves * inner + i]!;
        if (at >= 0) out[start + at * inner + i] = sums[i]!;
      }
    }
  }
  return out;
}
