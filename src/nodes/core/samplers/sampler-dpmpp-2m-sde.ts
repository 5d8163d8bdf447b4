import { defineNode } from "../../define.js";
import { choice } from "../../inputs.js";
import { amount, noiseDevice, sampling } from "./options.js";

export const samplerDpmpp2mSde = defineNode({
  key: "SamplerDPMPP_2M_SDE",
  category: "sampling/custom_sampling/samplers",
  description: "Stochastic second-order DPM-Solver++ (multistep), with Brownian noise.",
  inputs: {
    solver_type: choice(["midpoint", "heun"]),
    eta: amount(),
    s_noise: amount(),
    noise_device: noiseDevice(),
  },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ solver_type, eta, s_noise }) => sampling("dpmpp_2m_sde", { solver_type, eta, s_noise }),
});
