import { extremeInDiamond, extremeInSquare } from "../../../tensor/image/extremes.js";
import { defineNode } from "../../define.js";
import { masksOf } from "../../image-inputs.js";
import { boolean, int, mask } from "../../inputs.js";

export const growMask = defineNode({
  key: "GrowMask",
  category: "mask",
  description: "Grows a mask by a number of pixels, or shrinks it by a negative one.",
  inputs: {
    mask: mask(),
    expand: int({ default: 0, min: -16384, max: 16384 }),
    tapered_corners: boolean({ default: true }),
  },
  outputs: { MASK: "MASK" },
  run: ({ mask, expand, tapered_corners }) => {
    const masks = masksOf("mask", mask);
    const reach = Math.abs(expand);
    if (tapered_corners) return { MASK: extremeInDiamond(masks, reach, expand > 0) };
    const square = extremeInSquare(masks.reshape([...masks.shape, 1]), 2 * reach + 1, expand > 0);
    return { MASK: square.reshape(masks.shape) };
  },
});
