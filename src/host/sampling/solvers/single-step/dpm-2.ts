import { ancestralOf } from "../../../../tensor/sampling/ancestral.js";
import type { Solver } from "../../solver.js";
import { beginChurned, CHURN, type ChurnOptions } from "./churn.js";
import { ANCESTRAL, type AncestralOptions } from "./euler.js";
import { requireMiddle } from "./required.js";
import { along, begin, eulerTo, evaluate, integrate, noiseTerm } from "./step.js";

/** DPM-Solver-2 in the form of Karras et al., 2022: the slope at the geometric middle of a step. */
export const dpm2: Solver<ChurnOptions> = {
  noise: "global",
  options: CHURN,
  sample: (start, context, options) =>
    integrate(start, context, async (x, step) => {
      const first = await beginChurned(context, x, step, options);
      if (step.next === 0) return [[1, first.denoised]];
      const sigma = Math.sqrt(first.sigma * step.next);
      const middle = await evaluate(context, context.sum(eulerTo(first, sigma)), sigma);
      return along(first.x, [[step.next - first.sigma, middle]]);
    }),
};

/** `dpm2` with new noise after each step; a flow's by rectified flow. */
export const dpm2Ancestral: Solver<AncestralOptions> = {
  noise: "stream",
  options: ANCESTRAL,
  sample: (start, context, { eta, s_noise }) =>
    integrate(start, context, async (x, step) => {
      const first = await begin(context, x, step.sigma, step.index);
      const { down, up, scale } = ancestralOf(context.sampling, step.sigma, step.next, eta);
      if (down === 0) return [[1, first.denoised]];
      requireMiddle("dpm_2_ancestral", eta, step.sigma, down);
      const sigma = Math.sqrt(step.sigma * down);
      const middle = await evaluate(context, context.sum(eulerTo(first, sigma)), sigma);
      return along(x, [[down - step.sigma, middle]], scale, noiseTerm(context, step, s_noise * up));
    }),
};
