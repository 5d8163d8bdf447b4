import { cropped } from "../../../tensor/parts.js";
import { warnOfClips } from "../../bends.js";
import { defineNode } from "../../define.js";
import { masksOf, offset, side } from "../../image-inputs.js";
import { mask } from "../../inputs.js";

export const cropMask = defineNode({
  key: "CropMask",
  category: "mask",
  description: "A region of a mask, clipped at its borders.",
  inputs: { mask: mask(), x: offset(), y: offset(), width: side(), height: side() },
  outputs: { MASK: "MASK" },
  run: ({ mask, x, y, width, height }, { log }) => {
    const masks = masksOf("mask", mask);
    const [, inHeight, inWidth] = masks.shape as readonly [number, number, number];
    const [left, top] = [Math.min(x, inWidth), Math.min(y, inHeight)];
    const region = { top, left, height: Math.min(height, inHeight - top), width: Math.min(width, inWidth - left) };
    const sizes = { width: [width, region.width], height: [height, region.height] } as const;
    warnOfClips("mask", { x: [x, left], y: [y, top], ...sizes }, log);
    return { MASK: cropped(masks, 1, region) };
  },
});
