import type { Solver } from "../../solver.js";
import { adams } from "./adams.js";

interface GradientOptions {
  /** Weight of the newest derivative against the one before, 1 for Euler's method. */
  ge_gamma: number;
  /** Whether the derivative is that of the negative side. */
  cfg_pp?: boolean;
}

const gradientSolver = (options: GradientOptions, separate: boolean): Solver<GradientOptions> => ({
  noise: "none",
  options,
  async sample(x, context, { ge_gamma, cfg_pp = separate }) {
    const { sigmas } = context;
    return adams(x, context, {
      order: 2,
      separate: cfg_pp,
      weights: (index, order) => {
        const step = sigmas[index + 1]! - sigmas[index]!;
        return order === 1 ? [step] : [ge_gamma * step, (1 - ge_gamma) * step];
      },
    });
  },
});

/** Gradient estimation (arXiv 2306.04848): Euler's step along gamma * d + (1 - gamma) * the derivative before. */
export const gradientEstimation = gradientSolver({ ge_gamma: 2, cfg_pp: false }, false);

/** `gradientEstimation` along the derivative of the negative side, from the guided estimate. */
export const gradientEstimationCfgPp = gradientSolver({ ge_gamma: 2 }, true);
