import { inputError } from "../../../base/errors.js";
import { defineNode } from "../../define.js";
import { conditioning } from "../../inputs.js";

/** Most entries of a result: a chain of these nodes can double them at each. */
const MOST = 4096;

export const conditioningCombine = defineNode({
  key: "ConditioningCombine",
  displayName: "Conditioning (Combine)",
  category: "conditioning",
  description: "The entries of two conditionings; the model's estimates for them are averaged.",
  inputs: { conditioning_1: conditioning(), conditioning_2: conditioning() },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning_1, conditioning_2 }) => {
    if (conditioning_1.length + conditioning_2.length <= MOST)
      return { CONDITIONING: [...conditioning_1, ...conditioning_2] };
    const expected = `conditionings of at most ${MOST} entries together`;
    throw inputError("input.invalid", { input: "conditioning_2" }, expected, conditioning_2);
  },
});
