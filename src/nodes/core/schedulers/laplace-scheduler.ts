import { laplaceSigmas } from "../../../tensor/sampling/spaced-sigmas.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float } from "../../inputs.js";
import { ends, steps } from "./ends.js";

export const laplaceScheduler = defineNode({
  key: "LaplaceScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas at the quantiles of a Laplace distribution of their logarithm, without a 0.",
  inputs: {
    steps: steps(),
    ...ends(),
    mu: float({ default: 0, min: -10, max: 10, step: 0.1, round: false }),
    beta: float({ default: 0.5, min: 0, max: 10, step: 0.1, round: false }),
  },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ steps, sigma_max, sigma_min, mu, beta }) => {
    const sigmas = laplaceSigmas(steps, { max: sigma_max, min: sigma_min }, { mu, beta });
    return { SIGMAS: Tensor.from(sigmas, [sigmas.length]) };
  },
});
