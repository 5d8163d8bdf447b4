import { cropped } from "../../../tensor/parts.js";
import { warnOfClips } from "../../bends.js";
import { defineNode } from "../../define.js";
import { offset, side } from "../../image-inputs.js";
import { image } from "../../inputs.js";

export const imageCrop = defineNode({
  key: "ImageCrop",
  displayName: "Image Crop",
  category: "image/transform",
  description: "A region of an image, clipped at its borders; at least one pixel.",
  inputs: { image: image(), width: side(), height: side(), x: offset(), y: offset() },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, width, height, x, y }, { log }) => {
    const [, inHeight, inWidth] = image.shape as readonly [number, number, number, number];
    const [left, top] = [Math.max(Math.min(x, inWidth - 1), 0), Math.max(Math.min(y, inHeight - 1), 0)];
    const region = { top, left, height: Math.min(height, inHeight - top), width: Math.min(width, inWidth - left) };
    const sizes = { width: [width, region.width], height: [height, region.height] } as const;
    warnOfClips("image", { ...sizes, x: [x, left], y: [y, top] }, log);
    return { IMAGE: cropped(image, 1, region) };
  },
});
