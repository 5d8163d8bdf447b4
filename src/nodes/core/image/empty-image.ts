import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { side } from "../../image-inputs.js";
import { int } from "../../inputs.js";

export const emptyImage = defineNode({
  key: "EmptyImage",
  category: "image",
  description: "Images of one colour, given as a number: 65536 * red + 256 * green + blue.",
  inputs: {
    width: side(),
    height: side(),
    batch_size: int({ default: 1, min: 1, max: 4096 }),
    color: int({ default: 0, min: 0, max: 0xffffff }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ width, height, batch_size, color }) => {
    const out = Tensor.unfilled([batch_size, height, width, 3]);
    out.data.set([color >> 16, (color >> 8) & 255, color & 255].map((byte) => byte / 255));
    for (let filled = 3; filled < out.size; filled *= 2) out.data.copyWithin(filled, 0, filled);
    return { IMAGE: out };
  },
});
