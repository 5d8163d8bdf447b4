import type { SamplerChoice } from "../../../host/sampling/solver.js";
import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";
import { amount } from "./options.js";

export const samplerDpmAdaptative = defineNode({
  key: "SamplerDPMAdaptative",
  displayName: "SamplerDPMAdaptative",
  category: "sampling/custom_sampling/samplers",
  description: "DPM-Solver with a step size controlled by its estimated error.",
  inputs: {
    order: int({ default: 3, min: 2, max: 3 }),
    rtol: amount(0.05),
    atol: amount(0.0078),
    h_init: amount(0.05),
    pcoeff: amount(0),
    icoeff: amount(1),
    dcoeff: amount(0),
    accept_safety: amount(0.81),
    eta: amount(0),
    s_noise: amount(),
  },
  outputs: { SAMPLER: "SAMPLER" },
  run: (options) => {
    const choice: SamplerChoice = { sampler: "dpm_adaptive", options: { ...options } };
    return { SAMPLER: choice };
  },
});
