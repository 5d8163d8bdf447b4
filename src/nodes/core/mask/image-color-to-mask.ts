import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { channelsOf } from "../../image-inputs.js";
import { image, int } from "../../inputs.js";

/** The nearest byte, halves to the even one; NaN is 0. */
function byteOf(value: number): number {
  const scaled = Math.fround(255 * value);
  if (!(scaled > 0)) return 0;
  if (scaled >= 255) return 255;
  const floor = Math.floor(scaled);
  return scaled - floor > 0.5 || (scaled - floor === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

export const imageColorToMask = defineNode({
  key: "ImageColorToMask",
  category: "mask",
  description:
    "1 where an image has a colour, compared in 8 bits; the colour is the number 65536 * red + 256 * green + blue.",
  inputs: { image: image(), color: int({ default: 0, min: 0, max: 0xffffff }) },
  outputs: { MASK: "MASK" },
  run: ({ image, color }) => {
    const { data, shape } = channelsOf("image", image, 3);
    const mask = Tensor.zeros(shape.slice(0, 3));
    const [red, green, blue] = [color >> 16, (color >> 8) & 255, color & 255];
    for (let at = 0, from = 0; at < mask.size; at++, from += 3) {
      const isColour =
        byteOf(data[from]!) === red && byteOf(data[from + 1]!) === green && byteOf(data[from + 2]!) === blue;
      if (isColour) mask.data[at] = 1;
    }
    return { MASK: mask };
  },
});
