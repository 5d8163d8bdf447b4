import type { SamplerChoice } from "../../../host/sampling/solver.js";
import { defineNode } from "../../define.js";
import { amount } from "./options.js";

export const samplerDpmpp2sAncestral = defineNode({
  key: "SamplerDPMPP_2S_Ancestral",
  displayName: "SamplerDPMPP_2S_Ancestral",
  category: "sampling/custom_sampling/samplers",
  description: "Second-order DPM-Solver++ in two stages, with fresh noise.",
  inputs: { eta: amount(), s_noise: amount() },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ eta, s_noise }) => {
    const choice: SamplerChoice = { sampler: "dpmpp_2s_ancestral", options: { eta, s_noise } };
    return { SAMPLER: choice };
  },
});
