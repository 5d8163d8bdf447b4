import { inputError } from "../../../base/errors.js";
import { betaIndices } from "../../../tensor/sampling/beta-indices.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { float, model } from "../../inputs.js";
import { steps } from "./ends.js";

const KEY = "BetaSamplingScheduler";
/** Below it all quantiles are 0 or 1; 0 has no distribution. */
const LEAST = 1e-6;

export const betaSamplingScheduler = defineNode({
  key: KEY,
  displayName: "BetaSamplingScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas of the model at the quantiles of a beta distribution, and 0.",
  inputs: {
    model: model(),
    steps: steps(),
    alpha: float({ default: 0.6, min: 0, max: 50, step: 0.01, round: false }),
    beta: float({ default: 0.6, min: 0, max: 50, step: 0.01, round: false }),
  },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ model, steps, alpha, beta }) => {
    for (const [input, value] of Object.entries({ alpha, beta }))
      if (value < LEAST) throw inputError("input.below-minimum", { node: KEY, input }, `a number from ${LEAST}`, value);
    const table = model.sampling.sigmas;
    const levels = betaIndices(table.length, steps, alpha, beta).map((index) => table[index]!);
    return { SIGMAS: Tensor.from([...levels, 0], [levels.length + 1]) };
  },
});
