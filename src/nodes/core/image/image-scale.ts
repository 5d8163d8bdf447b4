import { IMAGE_METHODS, resizeImage } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { fourSides } from "../../../tensor/shape.js";
import { defineNode } from "../../define.js";
import { choice, image, int } from "../../inputs.js";

const KEY = "ImageScale";
const side = () => int({ default: 512, min: 0, max: 16384, step: 1 });

export const imageScale = defineNode({
  key: KEY,
  displayName: "Upscale Image",
  category: "image/upscaling",
  description: "Resizes an image; a side of 0 keeps the aspect ratio.",
  inputs: {
    image: image(),
    upscale_method: choice(IMAGE_METHODS),
    width: side(),
    height: side(),
    crop: choice(["disabled", "center"]),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, upscale_method: method, width, height, crop }) => {
    if (width === 0 && height === 0) return { IMAGE: image };
    const [, rows, columns] = fourSides(KEY, image, "[B, H, W, C]");
    const follow = (side: number): number => Math.max(1, roundHalfEven(side));
    const sides = {
      height: height === 0 ? follow((rows * width) / columns) : height,
      width: width === 0 ? follow((columns * height) / rows) : width,
    };
    return { IMAGE: resizeImage(image, { method, ...sides, crop }) };
  },
});
