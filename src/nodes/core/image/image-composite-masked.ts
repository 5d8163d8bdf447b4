import { asPlanes, widened } from "../../../tensor/image/planes.js";
import { composite, resizeBilinear } from "../../../tensor/ops.js";
import { resizeImage } from "../../../tensor/resize.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { channelsOf, masksOf, offset } from "../../image-inputs.js";
import { boolean, image, mask } from "../../inputs.js";

/** A mask of the source's size, with a value for each colour. */
function maskFor(source: Tensor, mask: Tensor): Tensor {
  const [, height, width, channels] = source.shape as readonly [number, number, number, number];
  const masks = masksOf("mask", mask);
  const sized = masks.shape[1] === height && masks.shape[2] === width ? masks : resizeBilinear(masks, height, width);
  return widened(sized, channels).reshape([sized.shape[0]!, height, width * channels]);
}

export const imageCompositeMasked = defineNode({
  key: "ImageCompositeMasked",
  category: "image",
  description: "Pastes an image onto another at a position, optionally through a mask.",
  inputs: {
    destination: image(),
    source: image(),
    x: offset(),
    y: offset(),
    resize_source: boolean({ default: false }),
    mask: mask({ optional: true }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ destination, source, x, y, resize_source, mask }) => {
    const [, height, width, channels] = destination.shape as readonly [number, number, number, number];
    const coloured = channelsOf("source", source, channels);
    const pasted = resize_source ? resizeImage(coloured, { method: "bilinear", height, width }) : coloured;
    const through = mask === undefined ? undefined : maskFor(pasted, mask);
    const result = composite(asPlanes(destination), asPlanes(pasted), x * channels, y, through);
    return { IMAGE: result.reshape(destination.shape) };
  },
});
