import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float, int } from "../../inputs.js";

const side = () => int({ default: 512, min: 1, max: 16384 });

export const solidMask = defineNode({
  key: "SolidMask",
  displayName: "Solid Mask",
  category: "mask",
  description: "A mask of one value.",
  inputs: { value: float({ default: 1, min: 0, max: 1, step: 0.01 }), width: side(), height: side() },
  outputs: { MASK: "MASK" },
  run: ({ value, width, height }) => ({ MASK: Tensor.full([1, height, width], value) }),
});
