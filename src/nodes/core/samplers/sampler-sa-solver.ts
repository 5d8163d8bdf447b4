import { percentToSigma } from "../../../tensor/sampling/percent-to-sigma.js";
import { defineNode } from "../../define.js";
import { boolean, float, int, model } from "../../inputs.js";
import { amount, sampling } from "./options.js";

export const samplerSaSolver = defineNode({
  key: "SamplerSASolver",
  category: "sampling/custom_sampling/samplers",
  description: "Stochastic Adams solver, with noise in a range of the schedule.",
  inputs: {
    model: model(),
    eta: float({ default: 1, min: 0, max: 10, step: 0.01, round: false }),
    sde_start_percent: float({ default: 0.2, min: 0, max: 1, step: 0.001 }),
    sde_end_percent: float({ default: 0.8, min: 0, max: 1, step: 0.001 }),
    s_noise: amount(),
    predictor_order: int({ default: 3, min: 1, max: 6 }),
    corrector_order: int({ default: 4, min: 0, max: 6 }),
    use_pece: boolean(),
    simple_order_2: boolean(),
  },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ model, eta, sde_start_percent, sde_end_percent, ...options }) => {
    const start = percentToSigma(model.sampling, sde_start_percent);
    const end = percentToSigma(model.sampling, sde_end_percent);
    const tau_func = (sigma: number): number => (start >= sigma && sigma >= end ? eta : 0);
    return sampling("sa_solver", { ...options, tau_func });
  },
});
