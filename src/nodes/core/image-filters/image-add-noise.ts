import { clampToUnit } from "../../../tensor/image/blur.js";
import { axpy } from "../../../tensor/ops.js";
import { createGenerator } from "../../../tensor/random.js";
import { defineNode } from "../../define.js";
import { float, image, seed } from "../../inputs.js";

export const imageAddNoise = defineNode({
  key: "ImageAddNoise",
  displayName: "Image Add Noise",
  category: "image",
  description: "Adds Gaussian noise with the standard deviation strength to an image, and clamps it to 0…1.",
  inputs: { image: image(), seed: seed(), strength: float({ default: 0.5, min: 0, max: 1, step: 0.01 }) },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, seed, strength }) => {
    const noise = createGenerator({ seed }).randn(image.shape);
    return { IMAGE: clampToUnit(axpy(image, noise, strength, noise)) };
  },
});
