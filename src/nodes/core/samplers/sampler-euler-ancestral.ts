import type { SamplerChoice } from "../../../host/sampling/solver.js";
import { defineNode } from "../../define.js";
import { amount } from "./options.js";

export const samplerEulerAncestral = defineNode({
  key: "SamplerEulerAncestral",
  displayName: "SamplerEulerAncestral",
  category: "sampling/custom_sampling/samplers",
  description: "Euler steps that add fresh noise.",
  inputs: { eta: amount(), s_noise: amount() },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ eta, s_noise }) => {
    const choice: SamplerChoice = { sampler: "euler_ancestral", options: { eta, s_noise } };
    return { SAMPLER: choice };
  },
});
