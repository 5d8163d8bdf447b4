import { firstChannels } from "../../tensor/channels.js";
import { channelToMask } from "../../tensor/ops.js";
import type { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { choice, image } from "../inputs.js";

const CHANNELS = ["red", "green", "blue"] as const;

export const imageToMask = defineNode({
  key: "ext imageToMask",
  description: "One colour channel of an image as a mask [B, H, W], in 256 levels.",
  deprecated: true,
  inputs: { image: image(), channel: choice(CHANNELS) },
  outputs: { MASK: "MASK" },
  run: ({ image, channel }) => ({
    MASK: channelToMask(withoutGreyAlpha(image), CHANNELS.indexOf(channel) as 0 | 1 | 2),
  }),
});

/** Grey and alpha [B, H, W, 2] as grey [B, H, W, 1]; other images as they are. */
const withoutGreyAlpha = (image: Tensor): Tensor => (image.shape[3] === 2 ? firstChannels(image, 1) : image);
