import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { conditioning, float } from "../../inputs.js";

const share = (start: number) => float({ default: start, min: 0, max: 1, step: 0.001 });

export const conditioningSetTimestepRange = defineNode({
  key: "ConditioningSetTimestepRange",
  displayName: "Conditioning (Set Timestep Range)",
  category: "advanced/conditioning",
  description: "Limits a conditioning to a part of sampling, from 0, its beginning, to 1, its end.",
  inputs: { conditioning: conditioning(), start: share(0), end: share(1) },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, start: start_percent, end: end_percent }) => ({
    CONDITIONING: withOptions(conditioning, { start_percent, end_percent }),
  }),
});
