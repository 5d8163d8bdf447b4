import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { conditioning, float } from "../../inputs.js";
import { areaStrength } from "./conditioning-set-area.js";

const share = (start: number) => float({ default: start, min: 0, max: 1, step: 0.01 });

export const conditioningSetAreaPercentage = defineNode({
  key: "ConditioningSetAreaPercentage",
  displayName: "Conditioning (Set Area with Percentage)",
  category: "conditioning",
  description: "Limits a conditioning to a rectangle; sizes are shares of the picture.",
  inputs: {
    conditioning: conditioning(),
    width: share(1),
    height: share(1),
    x: share(0),
    y: share(0),
    strength: areaStrength(),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, width, height, x, y, strength }) => {
    const area = ["percentage", height, width, y, x];
    return { CONDITIONING: withOptions(conditioning, { area, strength, set_area_to_bounds: false }) };
  },
});
