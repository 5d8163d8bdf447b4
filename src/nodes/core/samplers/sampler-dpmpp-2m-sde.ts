import type { SamplerChoice } from "../../../host/sampling/solver.js";
import { defineNode } from "../../define.js";
import { choice } from "../../inputs.js";
import { amount, noiseDevice } from "./options.js";

export const samplerDpmpp2mSde = defineNode({
  key: "SamplerDPMPP_2M_SDE",
  displayName: "SamplerDPMPP_2M_SDE",
  category: "sampling/custom_sampling/samplers",
  description: "Stochastic second-order DPM-Solver++ (multistep), with Brownian noise.",
  inputs: {
    solver_type: choice(["midpoint", "heun"]),
    eta: amount(),
    s_noise: amount(),
    noise_device: noiseDevice(),
  },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ solver_type, eta, s_noise }) => {
    const choice: SamplerChoice = { sampler: "dpmpp_2m_sde", options: { solver_type, eta, s_noise } };
    return { SAMPLER: choice };
  },
});
