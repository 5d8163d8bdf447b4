import { inverted } from "../../../tensor/channels.js";
import { defineNode } from "../../define.js";
import { image } from "../../inputs.js";

export const imageInvert = defineNode({
  key: "ImageInvert",
  displayName: "Invert Image",
  category: "image",
  description: "1 minus the image.",
  inputs: { image: image() },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image }) => ({ IMAGE: inverted(image) }),
});
