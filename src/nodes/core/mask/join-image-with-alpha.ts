import { resizeBilinear } from "../../../tensor/ops.js";
import { narrowed } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { channelsOf, masksOf } from "../../image-inputs.js";
import { image, mask } from "../../inputs.js";

export const joinImageWithAlpha = defineNode({
  key: "JoinImageWithAlpha",
  displayName: "Join Image with Alpha",
  category: "mask/compositing",
  description: "Adds a mask of transparency to images as alpha; the shorter batch decides how many.",
  inputs: { image: image(), alpha: mask() },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, alpha }) => {
    const { data: colours, shape } = channelsOf("image", image, 3);
    const [images, height, width] = shape as readonly [number, number, number];
    const masks = masksOf("alpha", alpha);
    const batch = Math.min(images, masks.shape[0]!);
    const isSized = masks.shape[1] === height && masks.shape[2] === width;
    const { data: transparency } = isSized ? masks : resizeBilinear(narrowed(masks, 0, 0, batch), height, width);
    const out = Tensor.unfilled([batch, height, width, 4]);
    for (let pixel = 0, to = 0; to < out.size; pixel++) {
      for (let k = 0; k < 3; k++) out.data[to++] = colours[3 * pixel + k]!;
      out.data[to++] = 1 - transparency[pixel]!;
    }
    return { IMAGE: out };
  },
});
