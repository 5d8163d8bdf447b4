import { expm1, log } from "../../../../native/elementary.js";
import type { Term } from "../../../../tensor/ops.js";
import type { Solver } from "../../solver.js";
import { run } from "./run.js";

/**
 * DPM-Solver++(2M) (arXiv 2211.01095) in lambda = -log(sigma), of any model. With an estimate of the negative side (U)
 * the guided one (D) is the clean part: x' = D + exp(-h) * (x - U) + (1 - exp(-h)) / (2 * r) * (D - U of the step before).
 */
const dpmpp2mSolver = (separate: boolean): Solver => ({
  noise: "none",
  options: {},
  async sample(x, context) {
    const { sigmas } = context;
    return run(x, context, {
      separate,
      order: 2,
      advance: ({ index, sigma, next, x, denoised, uncond, estimates: [, before] }) => {
        const decay = next / sigma;
        const h = log(sigma / next);
        const terms: Term[] = [
          [decay, x],
          [-decay, uncond],
        ];
        if (before === undefined) terms.push([1, denoised]);
        else {
          const slope = (-expm1(-h) * h) / (2 * log(sigmas[index - 1]! / sigma));
          terms.push([1 + slope, denoised], [-slope, before]);
        }
        return terms;
      },
    });
  },
});

export const dpmpp2m = dpmpp2mSolver(false);
export const dpmpp2mCfgPp = dpmpp2mSolver(true);
