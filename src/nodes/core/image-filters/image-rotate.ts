import { turned } from "../../../tensor/turned.js";
import { defineNode } from "../../define.js";
import { choice, image } from "../../inputs.js";

const ROTATIONS = ["none", "90 degrees", "180 degrees", "270 degrees"] as const;

export const imageRotate = defineNode({
  key: "ImageRotate",
  displayName: "Image Rotate",
  category: "image/transform",
  description: "Rotates an image clockwise.",
  inputs: { image: image(), rotation: choice(ROTATIONS) },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, rotation }) => ({ IMAGE: turned(image, 1, ROTATIONS.indexOf(rotation)) }),
});
