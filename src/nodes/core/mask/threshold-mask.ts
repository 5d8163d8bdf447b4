import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float, mask } from "../../inputs.js";

export const thresholdMask = defineNode({
  key: "ThresholdMask",
  category: "mask",
  description: "1 where a mask is above a value, else 0.",
  inputs: { mask: mask(), value: float({ default: 0.5, min: 0, max: 1, step: 0.01 }) },
  outputs: { MASK: "MASK" },
  run: ({ mask, value }) => {
    const result = Tensor.zeros(mask.shape);
    const [from, limit] = [mask.data, Math.fround(value)];
    for (let at = 0; at < from.length; at++) if (from[at]! > limit) result.data[at] = 1;
    return { MASK: result };
  },
});
