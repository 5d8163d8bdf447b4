import { inputError } from "../../../base/errors.js";
import { polyexponentialSigmas } from "../../../tensor/sampling/spaced-sigmas.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { ends, steps } from "./ends.js";

const KEY = "ExponentialScheduler";

export const exponentialScheduler = defineNode({
  key: KEY,
  displayName: "ExponentialScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas evenly spaced in their logarithm, and 0.",
  inputs: { steps: steps(), ...ends() },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ steps, sigma_max, sigma_min }) => {
    if (sigma_max === 0)
      throw inputError("input.below-minimum", { node: KEY, input: "sigma_max" }, "a number above 0", sigma_max);
    if (sigma_min === 0)
      throw inputError("input.below-minimum", { node: KEY, input: "sigma_min" }, "a number above 0", sigma_min);
    const sigmas = polyexponentialSigmas(steps, { max: sigma_max, min: sigma_min }, 1);
    return { SIGMAS: Tensor.from(sigmas, [sigmas.length]) };
  },
});
