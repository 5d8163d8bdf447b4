import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { conditioning } from "../../inputs.js";
import { areaStrength } from "./conditioning-set-area.js";

export const conditioningSetAreaStrength = defineNode({
  key: "ConditioningSetAreaStrength",
  displayName: "Conditioning (Set Area Strength)",
  category: "conditioning",
  description: "Sets the weight of a conditioning where several overlap.",
  inputs: { conditioning: conditioning(), strength: areaStrength() },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, strength }) => ({ CONDITIONING: withOptions(conditioning, { strength }) }),
});
