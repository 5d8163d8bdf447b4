import { blended } from "../../../tensor/image/blend.js";
import { defineNode } from "../../define.js";
import { channelsOf, fittedImage, requireBatch } from "../../image-inputs.js";
import { choice, float, image } from "../../inputs.js";

export const imageBlend = defineNode({
  key: "ImageBlend",
  displayName: "Image Blend",
  category: "image/postprocessing",
  description: "Blends two images; the second is cropped and resized to the first.",
  inputs: {
    image1: image(),
    image2: image(),
    blend_factor: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
    blend_mode: choice(["normal", "multiply", "screen", "overlay", "soft_light", "difference"]),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image1, image2, blend_factor, blend_mode }) => {
    const [, height, width, channels] = image1.shape as readonly [number, number, number, number];
    requireBatch("image2", image2, image1);
    const second = fittedImage(channelsOf("image2", image2, channels), height, width, "bicubic");
    return { IMAGE: blended(image1, second, blend_mode, blend_factor) };
  },
});
