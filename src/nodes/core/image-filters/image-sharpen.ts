import { gaussianWeights, sharpened } from "../../../tensor/image/blur.js";
import { defineNode } from "../../define.js";
import { float, image, int } from "../../inputs.js";

export const imageSharpen = defineNode({
  key: "ImageSharpen",
  displayName: "Image Sharpen",
  category: "image/postprocessing",
  description:
    "Adds 10 * alpha times the difference between an image and its Gaussian blur; sigma is a multiple of the radius.",
  inputs: {
    image: image(),
    sharpen_radius: int({ default: 1, min: 1, max: 31 }),
    sigma: float({ default: 1, min: 0.1, max: 10, step: 0.01 }),
    alpha: float({ default: 1, min: 0, max: 5, step: 0.01 }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, sharpen_radius, sigma, alpha }) => ({
    IMAGE: sharpened(image, gaussianWeights(2 * sharpen_radius + 1, sigma, 1), 10 * alpha),
  }),
});
