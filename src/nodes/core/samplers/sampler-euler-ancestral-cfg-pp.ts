import { defineNode } from "../../define.js";
import { float } from "../../inputs.js";
import { sampling } from "./options.js";

export const samplerEulerAncestralCfgPp = defineNode({
  key: "SamplerEulerAncestralCFGPP",
  category: "sampling/custom_sampling/samplers",
  description: "Euler steps of CFG++ that add fresh noise.",
  inputs: {
    eta: float({ default: 1, min: 0, max: 1, step: 0.01, round: false }),
    s_noise: float({ default: 1, min: 0, max: 10, step: 0.01, round: false }),
  },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ eta, s_noise }) => sampling("euler_ancestral_cfg_pp", { eta, s_noise }),
});
