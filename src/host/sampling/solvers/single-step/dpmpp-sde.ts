import { ancestral } from "../../../../tensor/sampling/ancestral.js";
import { signalOf } from "../../../../tensor/sampling/exponential.js";
import { halfLogSnr, sigmaOfHalfLogSnr } from "../../../../tensor/sampling/noise-level.js";
import { withSignal } from "../../../../tensor/sampling/percent-to-sigma.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { Solver, SolverContext } from "../../solver.js";
import type { LatentTerm } from "../../sum.js";
import type { AncestralOptions } from "./euler.js";
import { requirePositive } from "./required.js";
import { begin, evaluate, integrate, noiseTerm, type Step } from "./step.js";

interface DpmppSdeOptions extends AncestralOptions {
  /** Share of a step at which the second estimate is made. */
  readonly r: number;
}

/** DPM-Solver++ (SDE) with two estimates a step, its noise along one Brownian path. */
export const dpmppSde: Solver<DpmppSdeOptions> = {
  noise: "brownian",
  options: { eta: 1, s_noise: 1, r: 0.5 },
  sample: async (start, context, options) => {
    const { sampling, sigmas } = context;
    requirePositive("dpmpp_sde", "r", options.r);
    const share = 1 / (2 * options.r);
    const advance = async (x: Tensor, step: Step): Promise<readonly LatentTerm[]> => {
      const { sigma, next } = step;
      const { denoised } = await begin(context, x, sigma, step.index);
      if (next === 0) return [[1, denoised]];
      const from = halfLogSnr(sampling, sigma);
      const middle = sigmaOfHalfLogSnr(sampling, from + options.r * (halfLogSnr(sampling, next) - from));
      const half = stochastic(context, options, x, { sigma, next: middle }, [[1, denoised]]);
      const second = await evaluate(context, context.sum(half), middle);
      const estimates: LatentTerm[] = share === 1 ? [] : [[1 - share, denoised]];
      return stochastic(context, options, x, step, [...estimates, [share, second.denoised]]);
    };
    return integrate(start, context, advance, withSignal(sampling, sigmas));
  },
};

/** The terms of the ancestral step of x from one noise level to the next, towards a sum of estimates. */
function stochastic(
  context: SolverContext,
  { eta, s_noise }: DpmppSdeOptions,
  x: Tensor,
  way: { readonly sigma: number; readonly next: number },
  estimates: readonly LatentTerm[],
): LatentTerm[] {
  const signal = signalOf(context.sampling, way.sigma);
  const nextSignal = signalOf(context.sampling, way.next);
  const { down, up } = ancestral(way.sigma / signal, way.next / nextSignal, eta);
  const ratio = (down * signal) / way.sigma;
  const noise = eta > 0 && s_noise > 0 ? noiseTerm(context, way, nextSignal * s_noise * up) : [];
  return [
    [(nextSignal * down) / way.sigma, x],
    ...estimates.map(([weight, tensor]): LatentTerm => [nextSignal * (1 - ratio) * weight, tensor]),
    ...noise,
  ];
}
