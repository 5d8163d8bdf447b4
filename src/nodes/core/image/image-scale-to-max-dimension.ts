import { inputError } from "../../../base/errors.js";
import { resizeImage } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { fourSides } from "../../../tensor/shape.js";
import { defineNode } from "../../define.js";
import { choice, image, int } from "../../inputs.js";

const KEY = "ImageScaleToMaxDimension";

export const imageScaleToMaxDimension = defineNode({
  key: KEY,
  displayName: "Scale Image to Max Dimension",
  category: "image/upscaling",
  description: "Resizes an image so that its longer side has the length largest_size.",
  inputs: {
    image: image(),
    upscale_method: choice(["area", "lanczos", "bilinear", "nearest-exact", "bicubic"]),
    largest_size: int({ default: 512, min: 0, max: 16384, step: 1 }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, upscale_method: method, largest_size: size }) => {
    const [, rows, columns] = fourSides(KEY, image, "[B, H, W, C]");
    const height = columns > rows ? roundHalfEven((rows / columns) * size) : size;
    const width = rows > columns ? roundHalfEven((columns / rows) * size) : size;
    if (height === 0 || width === 0) {
      const expected = `a size at which both sides of ${columns} x ${rows} keep at least one pixel`;
      throw inputError("value.out-of-range", { node: KEY, input: "largest_size" }, expected, size);
    }
    return { IMAGE: resizeImage(image, { method, height, width }) };
  },
});
