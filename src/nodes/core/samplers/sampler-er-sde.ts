import { pow } from "../../../native/elementary.js";
import { defineNode } from "../../define.js";
import { choice, float, int } from "../../inputs.js";
import { sampling } from "./options.js";

const AMOUNT = { default: 1, min: 0, max: 100, step: 0.01, round: false } as const;

export const samplerErSde = defineNode({
  key: "SamplerER_SDE",
  category: "sampling/custom_sampling/samplers",
  description: "Extended reverse-time SDE solver; solver_type selects its noise.",
  inputs: {
    solver_type: choice(["ER-SDE", "Reverse-time SDE", "ODE"]),
    max_stage: int({ default: 3, min: 1, max: 3 }),
    eta: float({ ...AMOUNT, tooltip: "Used by Reverse-time SDE only; 0 makes it the ODE." }),
    s_noise: float(AMOUNT),
  },
  outputs: { SAMPLER: "SAMPLER" },
  run: ({ solver_type, max_stage, eta, s_noise }) => {
    const power = solver_type === "ODE" ? 1 : eta + 1;
    const options = {
      s_noise: solver_type !== "ER-SDE" && power === 1 ? 0 : s_noise,
      noise_scaler: solver_type === "ER-SDE" ? null : (sigma: number) => pow(sigma, power),
      max_stage,
    };
    return sampling("er_sde", options);
  },
});
