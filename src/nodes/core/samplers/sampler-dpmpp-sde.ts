import { defineNode } from "../../define.js";
import { amount, noiseDevice, sampling } from "./options.js";

export const samplerDpmppSde = defineNode({
  key: "SamplerDPMPP_SDE",
  category: "sampling/custom_sampling/samplers",
  description: "Stochastic DPM-Solver++ in two stages, with Brownian noise.",
  inputs: { eta: amount(), s_noise: amount(), r: amount(0.5), noise_device: noiseDevice() },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ eta, s_noise, r }) => sampling("dpmpp_sde", { eta, s_noise, r }),
});
