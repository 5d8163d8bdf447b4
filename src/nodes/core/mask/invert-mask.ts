import { inverted } from "../../../tensor/channels.js";
import { defineNode } from "../../define.js";
import { mask } from "../../inputs.js";

export const invertMask = defineNode({
  key: "InvertMask",
  displayName: "Invert Mask",
  category: "mask",
  description: "1 minus the mask.",
  inputs: { mask: mask() },
  outputs: { MASK: "MASK" },
  run: ({ mask }) => ({ MASK: inverted(mask) }),
});
