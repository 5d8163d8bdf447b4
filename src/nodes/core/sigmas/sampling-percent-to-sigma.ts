import { percentToSigma } from "../../../tensor/sampling/percent-to-sigma.js";
import { defineNode } from "../../define.js";
import { boolean, float, model } from "../../inputs.js";

export const samplingPercentToSigma = defineNode({
  key: "SamplingPercentToSigma",
  category: "sampling/custom_sampling/sigmas",
  description:
    "The noise level that a share of sampling has reached. At 0 it is 999999999.9 (1 for flow models), at 1 it is 0.",
  inputs: {
    model: model(),
    sampling_percent: float({ default: 0, min: 0, max: 1, step: 0.0001 }),
    return_actual_sigma: boolean({
      default: false,
      tooltip: "At 0 and 1, returns the largest and smallest sigma of the model instead.",
    }),
  },
  outputs: [{ name: "sigma_value", type: "FLOAT" }],
  run: ({ model, sampling_percent, return_actual_sigma }) => {
    const { sampling } = model;
    if (return_actual_sigma && sampling_percent === 0) return { sigma_value: sampling.sigmaMax };
    if (return_actual_sigma && sampling_percent === 1) return { sigma_value: sampling.sigmaMin };
    return { sigma_value: percentToSigma(sampling, sampling_percent) };
  },
});
