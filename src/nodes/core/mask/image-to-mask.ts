import { inputError } from "../../../base/errors.js";
import { channelOf } from "../../../tensor/channels.js";
import { defineNode } from "../../define.js";
import { choice, image } from "../../inputs.js";

const CHANNELS = ["red", "green", "blue", "alpha"] as const;

export const imageToMask = defineNode({
  key: "ImageToMask",
  displayName: "Convert Image to Mask",
  category: "mask",
  description: "One channel of an image as a mask.",
  inputs: { image: image(), channel: choice(CHANNELS) },
  outputs: { MASK: "MASK" },
  run: ({ image, channel }) => {
    const index = CHANNELS.indexOf(channel);
    if (index < image.shape[3]!) return { MASK: channelOf(image, index) };
    throw inputError("tensor.bad-shape", { input: "image" }, `an image with a channel "${channel}"`, image);
  },
});
