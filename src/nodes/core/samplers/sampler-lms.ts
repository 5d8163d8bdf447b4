import type { SamplerChoice } from "../../../host/sampling/solver.js";
import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";

export const samplerLms = defineNode({
  key: "SamplerLMS",
  displayName: "SamplerLMS",
  category: "sampling/custom_sampling/samplers",
  description: "Linear multistep method of at most this order.",
  inputs: { order: int({ default: 4, min: 1, max: 100 }) },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ order }) => {
    const choice: SamplerChoice = { sampler: "lms", options: { order } };
    return { SAMPLER: choice };
  },
});
