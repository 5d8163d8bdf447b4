import { inputError } from "../../../base/errors.js";
import { polyexponentialSigmas } from "../../../tensor/sampling/spaced-sigmas.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float } from "../../inputs.js";
import { ends, steps } from "./ends.js";

const KEY = "PolyexponentialScheduler";

export const polyexponentialScheduler = defineNode({
  key: KEY,
  displayName: "PolyexponentialScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas whose logarithm falls by a power law, and 0.",
  inputs: { steps: steps(), ...ends(), rho: float({ default: 1, min: 0, max: 100, step: 0.01, round: false }) },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ steps, sigma_max, sigma_min, rho }) => {
    if (sigma_max === 0)
      throw inputError("input.below-minimum", { node: KEY, input: "sigma_max" }, "a number above 0", sigma_max);
    if (sigma_min === 0)
      throw inputError("input.below-minimum", { node: KEY, input: "sigma_min" }, "a number above 0", sigma_min);
    const sigmas = polyexponentialSigmas(steps, { max: sigma_max, min: sigma_min }, rho);
    return { SIGMAS: Tensor.from(sigmas, [sigmas.length]) };
  },
});
