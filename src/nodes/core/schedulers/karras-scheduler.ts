import { inputError } from "../../../base/errors.js";
import { karrasSigmas } from "../../../tensor/sampling/spaced-sigmas.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float } from "../../inputs.js";
import { ends, steps } from "./ends.js";

const KEY = "KarrasScheduler";

export const karrasScheduler = defineNode({
  key: KEY,
  displayName: "KarrasScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas evenly spaced in their rho-th root, and 0.",
  inputs: { steps: steps(), ...ends(), rho: float({ default: 7, min: 0, max: 100, step: 0.01, round: false }) },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ steps, sigma_max, sigma_min, rho }) => {
    if (rho === 0) throw inputError("input.below-minimum", { node: KEY, input: "rho" }, "a number above 0", rho);
    const sigmas = karrasSigmas(steps, { max: sigma_max, min: sigma_min }, rho);
    if (!sigmas.every(Number.isFinite) || (sigmas[0] === 0 && sigma_max > 0)) {
      const expected = "a number for which sigma_max ^ (1 / rho) is within float32";
      throw inputError("value.out-of-range", { node: KEY, input: "rho" }, expected, rho);
    }
    return { SIGMAS: Tensor.from(sigmas, [sigmas.length]) };
  },
});
