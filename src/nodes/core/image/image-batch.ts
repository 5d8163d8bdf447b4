import { inputError } from "../../../base/errors.js";
import { joined } from "../../../tensor/parts.js";
import { defineNode } from "../../define.js";
import { fittedImage } from "../../image-inputs.js";
import { image } from "../../inputs.js";

export const imageBatch = defineNode({
  key: "ImageBatch",
  displayName: "Batch Images",
  category: "image",
  description: "Two batches as one; the second is cropped and resized to the first one's size.",
  inputs: { image1: image(), image2: image() },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image1, image2 }) => {
    const [, height, width, channels] = image1.shape as readonly [number, number, number, number];
    if (image2.shape[3] !== channels) {
      throw inputError("tensor.bad-shape", { input: "image2" }, `an image with ${channels} channels`, image2);
    }
    return { IMAGE: joined([image1, fittedImage(image2, height, width, "bilinear")], 0) };
  },
});
