import { defineNode } from "../../define.js";
import { image } from "../../inputs.js";

export const getImageSize = defineNode({
  key: "GetImageSize",
  displayName: "Get Image Size",
  category: "image",
  description: "Width, height and batch size of an image.",
  inputs: { image: image() },
  outputs: [
    { name: "width", type: "INT" },
    { name: "height", type: "INT" },
    { name: "batch_size", type: "INT" },
  ],
  run: ({ image }) => {
    const [batch_size, height, width] = image.shape;
    return { width, height, batch_size };
  },
});
