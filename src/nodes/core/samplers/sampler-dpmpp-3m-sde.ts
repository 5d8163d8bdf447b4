import { defineNode } from "../../define.js";
import { amount, noiseDevice, sampling } from "./options.js";

export const samplerDpmpp3mSde = defineNode({
  key: "SamplerDPMPP_3M_SDE",
  category: "sampling/custom_sampling/samplers",
  description: "Stochastic third-order DPM-Solver++ (multistep), with Brownian noise.",
  inputs: { eta: amount(), s_noise: amount(), noise_device: noiseDevice() },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ eta, s_noise }) => sampling("dpmpp_3m_sde", { eta, s_noise }),
});
