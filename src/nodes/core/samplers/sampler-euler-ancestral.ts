import { defineNode } from "../../define.js";
import { amount, sampling } from "./options.js";

export const samplerEulerAncestral = defineNode({
  key: "SamplerEulerAncestral",
  category: "sampling/custom_sampling/samplers",
  description: "Euler steps that add fresh noise.",
  inputs: { eta: amount(), s_noise: amount() },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ eta, s_noise }) => sampling("euler_ancestral", { eta, s_noise }),
});
