import { DITHERS, quantized } from "../../../tensor/image/quantize.js";
import { defineNode } from "../../define.js";
import { channelsOf } from "../../image-inputs.js";
import { choice, image, int } from "../../inputs.js";

export const imageQuantize = defineNode({
  key: "ImageQuantize",
  displayName: "Image Quantize",
  category: "image/postprocessing",
  description: "Reduces each image to a number of colours, chosen by median cut.",
  inputs: { image: image(), colors: int({ default: 256, min: 1, max: 256 }), dither: choice(DITHERS) },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, colors, dither }) => ({ IMAGE: quantized(channelsOf("image", image, 3), colors, dither) }),
});
