import { inputError } from "../../../base/errors.js";
import { IMAGE_METHODS, resizeImage } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { fourSides } from "../../../tensor/shape.js";
import { defineNode } from "../../define.js";
import { choice, float, image, int } from "../../inputs.js";

const KEY = "ImageScaleToTotalPixels";

export const imageScaleToTotalPixels = defineNode({
  key: KEY,
  displayName: "Scale Image to Total Pixels",
  category: "image/upscaling",
  description:
    "Resizes an image to a number of pixels, in units of 1024 x 1024; sides are multiples of resolution_steps.",
  inputs: {
    image: image(),
    upscale_method: choice(IMAGE_METHODS),
    megapixels: float({ default: 1, min: 0.01, max: 16, step: 0.01 }),
    resolution_steps: int({ optional: true, default: 1, min: 1, max: 256 }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, upscale_method: method, megapixels, resolution_steps: step }) => {
    const [, rows, columns] = fourSides(KEY, image, "[B, H, W, C]");
    const factor = Math.sqrt((megapixels * 1024 * 1024) / (columns * rows));
    const [height = 0, width = 0] = [rows, columns].map((side) => roundHalfEven((side * factor) / step) * step);
    if (height === 0 || width === 0) {
      const expected = `enough pixels for both sides of a ${columns} x ${rows} picture to be at least ${step}`;
      throw inputError("value.out-of-range", { node: KEY, input: "megapixels" }, expected, megapixels);
    }
    return { IMAGE: resizeImage(image, { method, height, width }) };
  },
});
