import { defineNode } from "../../define.js";
import { conditioning } from "../../inputs.js";

export const conditioningCombine = defineNode({
  key: "ConditioningCombine",
  displayName: "Conditioning (Combine)",
  category: "conditioning",
  description: "The entries of two conditionings; the model's estimates for them are averaged.",
  inputs: { conditioning_1: conditioning(), conditioning_2: conditioning() },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning_1, conditioning_2 }) => ({ CONDITIONING: [...conditioning_1, ...conditioning_2] }),
});
