import { inputError } from "../../../base/errors.js";
import { rgbOf } from "../../../tensor/image/yuv.js";
import { defineNode } from "../../define.js";
import { image } from "../../inputs.js";

export const imageYuvToRgb = defineNode({
  key: "ImageYUVToRGB",
  category: "image/batch",
  description: "An image from luma and two colour differences, each the mean of an image's channels.",
  inputs: { Y: image(), U: image(), V: image() },
  outputs: { IMAGE: "IMAGE" },
  run: ({ Y, U, V }) => {
    const size = Y.shape.slice(0, 3);
    for (const [input, value] of Object.entries({ U, V })) {
      if (value.shape.slice(0, 3).join() === size.join()) continue;
      throw inputError("tensor.bad-shape", { input }, `an image of shape [${size.join(", ")}, C]`, value);
    }
    return { IMAGE: rgbOf(Y, U, V) };
  },
});
