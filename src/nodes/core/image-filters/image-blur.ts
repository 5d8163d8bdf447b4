import { convolved, gaussianWeights } from "../../../tensor/image/blur.js";
import { defineNode } from "../../define.js";
import { float, image, int } from "../../inputs.js";

export const imageBlur = defineNode({
  key: "ImageBlur",
  displayName: "Image Blur",
  category: "image/postprocessing",
  description: "Blurs an image with a Gaussian; sigma is a multiple of the radius.",
  inputs: {
    image: image(),
    blur_radius: int({ default: 1, min: 1, max: 31 }),
    sigma: float({ default: 1, min: 0.1, max: 10, step: 0.1 }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, blur_radius, sigma }) => ({
    IMAGE: convolved(image, gaussianWeights(2 * blur_radius + 1, sigma, 1)),
  }),
});
