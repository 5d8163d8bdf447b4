import { yuvOf } from "../../../tensor/image/yuv.js";
import { defineNode } from "../../define.js";
import { channelsOf } from "../../image-inputs.js";
import { image } from "../../inputs.js";

export const imageRgbToYuv = defineNode({
  key: "ImageRGBToYUV",
  category: "image/batch",
  description: "Luma and the two colour differences of an image, as grey images.",
  inputs: { image: image() },
  outputs: [
    { name: "Y", type: "IMAGE" },
    { name: "U", type: "IMAGE" },
    { name: "V", type: "IMAGE" },
  ],
  run: ({ image }) => {
    const [Y, U, V] = yuvOf(channelsOf("image", image, 3));
    return { Y, U, V };
  },
});
