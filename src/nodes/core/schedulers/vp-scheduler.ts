import { inputError } from "../../../base/errors.js";
import { vpSigmas } from "../../../tensor/sampling/spaced-sigmas.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float } from "../../inputs.js";
import { steps } from "./ends.js";

const KEY = "VPScheduler";

export const vpScheduler = defineNode({
  key: KEY,
  displayName: "VPScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas of the continuous variance-preserving process, and 0.",
  inputs: {
    steps: steps(),
    beta_d: float({ default: 19.9, min: 0, max: 5000, step: 0.01, round: false }),
    beta_min: float({ default: 0.1, min: 0, max: 5000, step: 0.01, round: false }),
    eps_s: float({ default: 0.001, min: 0, max: 1, step: 0.0001, round: false }),
  },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ steps, beta_d, beta_min, eps_s }) => {
    const sigmas = vpSigmas(steps, beta_d, beta_min, eps_s);
    if (sigmas[0] === Number.POSITIVE_INFINITY) {
      const [input, value] = beta_d / 2 > beta_min ? (["beta_d", beta_d] as const) : (["beta_min", beta_min] as const);
      const expected = "a beta_d / 2 + beta_min of at most 88, beyond which sigmas are infinite";
      throw inputError("input.above-maximum", { node: KEY, input }, expected, value);
    }
    return { SIGMAS: Tensor.from(sigmas, [sigmas.length]) };
  },
});
