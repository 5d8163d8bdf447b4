import { defineNode } from "../../define.js";
import { amount, sampling } from "./options.js";

export const samplerDpmpp2sAncestral = defineNode({
  key: "SamplerDPMPP_2S_Ancestral",
  category: "sampling/custom_sampling/samplers",
  description: "Second-order DPM-Solver++ in two stages, with fresh noise.",
  inputs: { eta: amount(), s_noise: amount() },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ eta, s_noise }) => sampling("dpmpp_2s_ancestral", { eta, s_noise }),
});
