import { defineNode } from "../../define.js";
import { choice, float } from "../../inputs.js";
import { amount, sampling } from "./options.js";

export const samplerSeeds2 = defineNode({
  key: "SamplerSEEDS2",
  category: "sampling/custom_sampling/samplers",
  description: "Stochastic exponential solver SEEDS in two stages.",
  inputs: {
    solver_type: choice(["phi_1", "phi_2"]),
    eta: amount(),
    s_noise: amount(),
    r: float({ default: 0.5, min: 0.01, max: 1, step: 0.01, round: false }),
  },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ solver_type, eta, s_noise, r }) => sampling("seeds_2", { solver_type, eta, s_noise, r }),
});
