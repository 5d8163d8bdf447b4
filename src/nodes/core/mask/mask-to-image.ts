import { widened } from "../../../tensor/image/planes.js";
import { defineNode } from "../../define.js";
import { masksOf } from "../../image-inputs.js";
import { mask } from "../../inputs.js";

export const maskToImage = defineNode({
  key: "MaskToImage",
  displayName: "Convert Mask to Image",
  category: "mask",
  description: "A mask as a grey image.",
  inputs: { mask: mask() },
  outputs: { IMAGE: "IMAGE" },
  run: ({ mask }) => ({ IMAGE: widened(masksOf("mask", mask), 3) }),
});
