import { ancestral32, ancestralOf } from "../../../../tensor/sampling/ancestral.js";
import type { ModelSampling } from "../../../../tensor/sampling/model-sampling.js";
import { halfLogSnr, isFlow, sigmaOfHalfLogSnr } from "../../../../tensor/sampling/noise-level.js";
import type { Solver } from "../../solver.js";
import { ANCESTRAL, type AncestralOptions } from "./euler.js";
import { requireMiddle } from "./required.js";
import { begin, eulerTo, evaluate, integrate, noiseTerm } from "./step.js";

/** DPM-Solver++ (2S) (Lu et al., 2022) with new noise after each step; a flow's by rectified flow. */
export const dpmpp2sAncestral: Solver<AncestralOptions> = {
  noise: "stream",
  options: ANCESTRAL,
  sample: (start, context, { eta, s_noise }) => {
    const { sampling } = context;
    const drawsAlways = !isFlow(sampling);
    return integrate(start, context, async (x, step) => {
      const first = await begin(context, x, step.sigma, step.index);
      const { down, up, scale } = ancestralOf(sampling, step.sigma, step.next, eta);
      requireMiddle("dpmpp_2s_ancestral", eta, step.sigma, down);
      let { denoised } = first;
      if (down > 0) {
        const sigma = middleOf(sampling, step.sigma, down);
        ({ denoised } = await evaluate(context, context.sum(eulerTo(first, sigma)), sigma));
      }
      const draws = step.next > 0 && (drawsAlways || eta > 0);
      const noise = draws ? noiseTerm(context, step, s_noise * up) : [];
      return eulerTo({ ...first, denoised }, down, scale, noise);
    });
  },
};

/** The middle of a step by half-log-SNR; a flow begins at pure noise, which has none. */
function middleOf(sampling: ModelSampling, sigma: number, down: number): number {
  if (!isFlow(sampling)) return Math.sqrt(sigma * down);
  if (sigma === 1) return 0.9999;
  return sigmaOfHalfLogSnr(sampling, (halfLogSnr(sampling, sigma) + halfLogSnr(sampling, down)) / 2);
}

/**
 * `dpmpp2sAncestral` of CFG++: each step adds the difference of the guided and the negative estimate to x; the latter is
 * that of the middle in the step's second half. A flow is treated as clean + sigma * noise.
 */
export const dpmpp2sAncestralCfgPp: Solver<AncestralOptions> = {
  noise: "stream",
  options: ANCESTRAL,
  sample: (start, context, { eta, s_noise }) =>
    integrate(start, context, async (x, step) => {
      const { index, sigma, next } = step;
      const first = await context.denoiseBoth(x, sigma);
      context.report(index, first.denoised);
      const { down, up } = ancestral32(sigma, next, eta);
      if (down === 0) {
        if (next === 0) return [[1, first.denoised]];
        return [[1, first.denoised], ...noiseTerm(context, step, s_noise * up)];
      }
      const middle = Math.sqrt(sigma * down);
      const ratio = middle / sigma;
      const second = await context.denoiseBoth(
        context.sum([
          [ratio, x],
          [1, first.denoised],
          [-ratio, first.uncond],
        ]),
        middle,
      );
      const rest = down / sigma;
      return [
        [rest, x],
        [rest, first.denoised],
        [-rest, second.uncond],
        [1 - rest, second.denoised],
        ...noiseTerm(context, step, s_noise * up),
      ];
    }),
};
