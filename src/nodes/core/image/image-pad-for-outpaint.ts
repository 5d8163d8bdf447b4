import { square } from "../../../native/elementary.js";
import { asPlanes } from "../../../tensor/image/planes.js";
import { composite } from "../../../tensor/ops.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { offset } from "../../image-inputs.js";
import { image } from "../../inputs.js";

interface Margins {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Mask of what is painted over: near each side that gains a margin, by the square of the distance to `feathering`. */
function feather(height: number, width: number, margins: Margins, feathering: number): Tensor {
  const mask = Tensor.zeros([1, height, width]);
  if (feathering === 0 || 2 * feathering >= height || 2 * feathering >= width) return mask;
  const distance = (at: number, size: number, before: number, after: number): number =>
    Math.min(before === 0 ? size : at, after === 0 ? size : size - at);
  for (let y = 0, to = 0; y < height; y++) {
    const down = distance(y, height, margins.top, margins.bottom);
    for (let x = 0; x < width; x++, to++) {
      const nearest = Math.min(down, distance(x, width, margins.left, margins.right));
      if (nearest < feathering) mask.data[to] = square((feathering - nearest) / feathering);
    }
  }
  return mask;
}

export const imagePadForOutpaint = defineNode({
  key: "ImagePadForOutpaint",
  displayName: "Pad Image for Outpainting",
  category: "image",
  description: "Adds grey margins to an image; the mask covers them and fades into the image.",
  inputs: { image: image(), left: offset(), top: offset(), right: offset(), bottom: offset(), feathering: offset(40) },
  outputs: [
    { name: "IMAGE", type: "IMAGE" },
    { name: "MASK", type: "MASK" },
  ],
  run: ({ image, left, top, right, bottom, feathering }) => {
    const [batch, height, width, channels] = image.shape as readonly [number, number, number, number];
    const [outHeight, outWidth] = [top + height + bottom, left + width + right];
    const grey = Tensor.full([batch, outHeight, outWidth, channels], 0.5);
    const padded = composite(asPlanes(grey), asPlanes(image), left * channels, top, undefined, asPlanes(grey));
    const inner = feather(height, width, { left, top, right, bottom }, feathering);
    const mask = composite(
      Tensor.full([1, 1, outHeight, outWidth], 1),
      inner.reshape([1, 1, height, width]),
      left,
      top,
    );
    return { IMAGE: padded.reshape(grey.shape), MASK: mask.reshape([1, outHeight, outWidth]) };
  },
});
