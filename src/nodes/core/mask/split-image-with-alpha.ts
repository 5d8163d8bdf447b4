import { channelOf, inverted } from "../../../tensor/channels.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { channelsOf } from "../../image-inputs.js";
import { image } from "../../inputs.js";

export const splitImageWithAlpha = defineNode({
  key: "SplitImageWithAlpha",
  displayName: "Split Image with Alpha",
  category: "mask/compositing",
  description: "Splits an image into its colours and a mask of its transparency.",
  inputs: { image: image() },
  outputs: [
    { name: "IMAGE", type: "IMAGE" },
    { name: "MASK", type: "MASK" },
  ],
  run: ({ image }) => ({
    IMAGE: channelsOf("image", image, 3),
    MASK: image.shape[3] === 4 ? inverted(channelOf(image, 3)) : Tensor.zeros(image.shape.slice(0, 3)),
  }),
});
