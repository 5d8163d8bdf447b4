import { ancestral } from "../../../../tensor/sampling/ancestral.js";
import { signalOf } from "../../../../tensor/sampling/exponential.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { Solver, SolverContext } from "../../solver.js";
import type { LatentTerm } from "../../sum.js";
import { ANCESTRAL, type AncestralOptions } from "./euler.js";
import { integrate, noiseTerm, type Step } from "./step.js";

/** Euler's method of CFG++ (Chung et al., 2024): the estimate is guided, the noise is that of the negative side. */
export const eulerCfgPp: Solver = {
  noise: "none",
  options: {},
  sample: (start, context) =>
    integrate(start, context, (x, step) => cfgPpStep(x, step, context, { eta: 0, s_noise: 0 })),
};

/** `eulerCfgPp` with new noise after each step. */
export const eulerAncestralCfgPp: Solver<AncestralOptions> = {
  noise: "stream",
  options: ANCESTRAL,
  sample: (start, context, options) => integrate(start, context, (x, step) => cfgPpStep(x, step, context, options)),
};

async function cfgPpStep(
  x: Tensor,
  step: Step,
  context: SolverContext,
  { eta, s_noise }: AncestralOptions,
): Promise<readonly LatentTerm[]> {
  const { index, sigma, next } = step;
  const { denoised, uncond } = await context.denoiseBoth(x, sigma);
  context.report(index, denoised);
  if (next === 0) return [[1, denoised]];
  const signal = signalOf(context.sampling, sigma);
  const nextSignal = signalOf(context.sampling, next);
  const { down, up } = ancestral(sigma / signal, next / nextSignal, eta);
  const ratio = (nextSignal * down) / sigma;
  const noise = eta > 0 && s_noise > 0 ? noiseTerm(context, step, nextSignal * s_noise * up) : [];
  return [[nextSignal, denoised], [ratio, x], [-ratio * signal, uncond], ...noise];
}
