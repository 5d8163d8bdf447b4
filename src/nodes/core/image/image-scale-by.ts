import { IMAGE_METHODS, resizeImage } from "../../../tensor/resize.js";
import { fourSides } from "../../../tensor/shape.js";
import { defineNode } from "../../define.js";
import { choice, float, image } from "../../inputs.js";
import { scaledSides } from "../../scaled-sides.js";

const KEY = "ImageScaleBy";

export const imageScaleBy = defineNode({
  key: KEY,
  displayName: "Upscale Image By",
  category: "image/upscaling",
  description: "Resizes an image by a factor.",
  inputs: {
    image: image(),
    upscale_method: choice(IMAGE_METHODS),
    scale_by: float({ default: 1, min: 0.01, max: 8, step: 0.01 }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, upscale_method: method, scale_by }) => {
    const [, height, width] = fourSides(KEY, image, "[B, H, W, C]");
    const sides = scaledSides({ node: KEY, input: "scale_by" }, [height, width], scale_by);
    return { IMAGE: resizeImage(image, { method, ...sides }) };
  },
});
