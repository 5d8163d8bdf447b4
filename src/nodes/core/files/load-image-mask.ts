import { channelOf } from "../../../tensor/channels.js";
import { defineNode } from "../../define.js";
import { choice } from "../../inputs.js";
import { fileHash, imageFile, loadPictures, transparency, validImage } from "./load-image.js";

const COLOURS = ["red", "green", "blue"] as const;

export const loadImageMask = defineNode({
  key: "LoadImageMask",
  displayName: "Load Image (as Mask)",
  category: "mask",
  description: "Reads one channel of a picture's first frame; alpha is inverted, so that transparent is 1.",
  inputs: { image: imageFile(), channel: choice(["alpha", ...COLOURS]) },
  outputs: { MASK: "MASK" },
  validate: validImage,
  isChanged: fileHash,
  run: async ({ image, channel }, { readInput, isBlocking }) => {
    const { pictures } = await loadPictures(image, { readInput, isBlocking }, 1);
    return { MASK: channel === "alpha" ? transparency(pictures) : channelOf(pictures, COLOURS.indexOf(channel)) };
  },
});
