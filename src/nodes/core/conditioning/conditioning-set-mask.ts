import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { choice, conditioning, mask } from "../../inputs.js";
import { areaStrength } from "./conditioning-set-area.js";

export const conditioningSetMask = defineNode({
  key: "ConditioningSetMask",
  displayName: "Conditioning (Set Mask)",
  category: "conditioning",
  description: "Limits a conditioning to a mask, optionally also to the rectangle around it.",
  inputs: {
    conditioning: conditioning(),
    mask: mask(),
    strength: areaStrength(),
    set_cond_area: choice(["default", "mask bounds"]),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, mask, strength, set_cond_area }) => {
    const set_area_to_bounds = set_cond_area !== "default";
    return { CONDITIONING: withOptions(conditioning, { mask, set_area_to_bounds, mask_strength: strength }) };
  },
});
