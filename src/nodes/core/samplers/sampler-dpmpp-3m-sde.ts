import type { SamplerChoice } from "../../../host/sampling/solver.js";
import { defineNode } from "../../define.js";
import { amount, noiseDevice } from "./options.js";

export const samplerDpmpp3mSde = defineNode({
  key: "SamplerDPMPP_3M_SDE",
  displayName: "SamplerDPMPP_3M_SDE",
  category: "sampling/custom_sampling/samplers",
  description: "Stochastic third-order DPM-Solver++ (multistep), with Brownian noise.",
  inputs: { eta: amount(), s_noise: amount(), noise_device: noiseDevice() },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ eta, s_noise }) => {
    const choice: SamplerChoice = { sampler: "dpmpp_3m_sde", options: { eta, s_noise } };
    return { SAMPLER: choice };
  },
});
