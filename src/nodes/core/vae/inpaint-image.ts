import { inputError } from "../../../base/errors.js";
import { resizeBilinear } from "../../../tensor/ops.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { maskSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import { coloursOf, wholeCells } from "../../cells.js";

/** An image for inpainting, cut to whole cells of the vae. */
export interface InpaintImage {
  /** [B, H, W, 3] */
  readonly pixels: Tensor;
  /** The pixels, grey where the rounded mask is 1. */
  readonly hidden: Tensor;
  /** [N, 1, H, W], N being 1 or B; not rounded. */
  readonly mask: Tensor;
}

/** Resizes the mask to the image, cuts both, and makes grey what is to be painted. */
export function inpaintImage(image: Tensor, mask: Tensor): InpaintImage {
  const colours = coloursOf(image, "pixels");
  const [batch = 0, height = 0, width = 0] = colours.shape;
  const [count, ownHeight, ownWidth] = maskSides("mask", mask);
  if (count !== 1 && count !== batch)
    throw inputError(
      "input.invalid",
      { input: "mask" },
      batch === 1 ? "one mask" : `one mask, or ${batch}, one for each image`,
      mask,
    );
  const single = mask.reshape([count, 1, ownHeight, ownWidth]);
  const fits = ownHeight === height && ownWidth === width;
  const sized = wholeCells(fits ? single : resizeBilinear(single, height, width), -2);
  const pixels = wholeCells(colours, 1);
  return { pixels, hidden: greyed(pixels, sized), mask: sized };
}

/** (x - 0.5) * (1 - mask) + 0.5 with the rounded mask, in the float32 steps of ComfyUI. */
function greyed(pixels: Tensor, mask: Tensor): Tensor {
  const out = Tensor.unfilled(pixels.shape);
  const [from, through, into] = [pixels.data, mask.data, out.data];
  for (let at = 0, pixel = 0; at < into.length; pixel++) {
    if (pixel === through.length) pixel = 0;
    const visible = 1 - roundHalfEven(through[pixel]!);
    for (let colour = 0; colour < 3; colour++, at++)
      into[at] = Math.fround(Math.fround(from[at]! - 0.5) * visible) + 0.5;
  }
  return out;
}
