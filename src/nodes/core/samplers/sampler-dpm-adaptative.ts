import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";
import { amount, sampling } from "./options.js";

export const samplerDpmAdaptative = defineNode({
  key: "SamplerDPMAdaptative",
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
  run: (options) => sampling("dpm_adaptive", options),
});
