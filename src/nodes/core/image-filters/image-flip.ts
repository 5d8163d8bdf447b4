import { mirrored, upsideDown } from "../../../tensor/turned.js";
import { defineNode } from "../../define.js";
import { choice, image } from "../../inputs.js";

export const imageFlip = defineNode({
  key: "ImageFlip",
  displayName: "Image Flip",
  category: "image/transform",
  description: "Flips an image vertically or horizontally.",
  inputs: { image: image(), flip_method: choice(["x-axis: vertically", "y-axis: horizontally"]) },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, flip_method }) => ({ IMAGE: flip_method.startsWith("x") ? upsideDown(image, 1) : mirrored(image, 1) }),
});
