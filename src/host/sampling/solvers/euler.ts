import { ancestral, ancestralOf, isFlow, signalOf } from "../../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { LatentTerm, Solver, SolverContext } from "../solver.js";
import {
  along,
  begin,
  beginChurned,
  CHURN,
  type ChurnOptions,
  eulerTo,
  evaluate,
  integrate,
  noiseTerm,
  type Step,
} from "./steps.js";

/** Options of a solver that adds noise in each step: its amount, 1 that of the reverse process, and its factor. */
export interface AncestralOptions {
  readonly eta: number;
  readonly s_noise: number;
}

export const ANCESTRAL: AncestralOptions = { eta: 1, s_noise: 1 };

/** Euler's method (Karras et al., 2022, Algorithm 2 without its correction). */
export const euler: Solver<ChurnOptions> = {
  noise: "global",
  options: CHURN,
  sample: (start, context, options) =>
    integrate(start, context, async (x, step) => eulerTo(await beginChurned(context, x, step, options), step.next)),
};

/** Euler's method with new noise after each step; a flow's by rectified flow. */
export const eulerAncestral: Solver<AncestralOptions> = {
  noise: "stream",
  options: ANCESTRAL,
  sample: (start, context, { eta, s_noise }) => {
    const { sampling } = context;
    const drawsAlways = !isFlow(sampling);
    return integrate(start, context, async (x, step) => {
      const point = await begin(context, x, step.sigma, step.index);
      const { down, up, scale } = ancestralOf(sampling, step.sigma, step.next, eta);
      if (down === 0) return [[1, point.denoised]];
      return eulerTo(point, down, scale, drawsAlways || eta > 0 ? noiseTerm(context, step, s_noise * up) : []);
    });
  },
};

/**
 * The reverse process of DDPM (Ho et al., 2020), which is Euler's ancestral step of eta 1 for clean + sigma * noise; a flow
 * too is treated as that.
 */
export const ddpm: Solver = {
  noise: "stream",
  options: {},
  sample: (start, context) =>
    integrate(start, context, async (x, step) => {
      const point = await begin(context, x, step.sigma, step.index);
      const { down, up } = ancestral(step.sigma, step.next, 1);
      return eulerTo(point, down, 1, step.next > 0 ? noiseTerm(context, step, up) : []);
    }),
};

/** Sampling of latent consistency models (Luo et al., 2023): new noise on every estimate. */
export const lcm: Solver = {
  noise: "stream",
  options: {},
  sample: (start, context) =>
    integrate(start, context, async (x, step) => {
      const { denoised } = await begin(context, x, step.sigma, step.index);
      if (!(step.next > 0)) return [[1, denoised]];
      const signal = signalOf(context.sampling, step.next);
      return [[signal, denoised], ...noiseTerm(context, step, step.next)];
    }),
};

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

/** Heun's method (Karras et al., 2022, Algorithm 2): the mean of the slopes at both ends of a step. */
export const heun: Solver<ChurnOptions> = {
  noise: "global",
  options: CHURN,
  sample: (start, context, options) =>
    integrate(start, context, async (x, step) => {
      const { next } = step;
      const first = await beginChurned(context, x, step, options);
      const predicted = context.sum(eulerTo(first, next));
      if (next === 0) return [[1, predicted]];
      const last = await evaluate(context, predicted, next);
      const half = (next - first.sigma) / 2;
      return along(first.x, [
        [half, first],
        [half, last],
      ]);
    }),
};

/**
 * Heun++ with up to three slopes, the later ones weighted by their noise levels over the first of the schedule. The last
 * two steps have two slopes and one; the last noise level counts as the end also if it is not 0.
 */
export const heunpp2: Solver<ChurnOptions> = {
  noise: "global",
  options: CHURN,
  sample: (start, context, options) => {
    const { sigmas } = context;
    const end = sigmas[sigmas.length - 1]!;
    return integrate(start, context, async (x, step) => {
      const { index, next } = step;
      const first = await beginChurned(context, x, step, options, true);
      const predicted = context.sum(eulerTo(first, next));
      if (next === end) return [[1, predicted]];
      const distance = next - first.sigma;
      const second = await evaluate(context, predicted, next);
      const afterNext = sigmas[index + 2]!;
      if (afterNext === end) {
        const weight = next / (2 * sigmas[0]!);
        return along(first.x, [
          [distance * (1 - weight), first],
          [distance * weight, second],
        ]);
      }
      const third = await evaluate(context, context.sum(eulerTo(second, afterNext)), afterNext);
      const weights = [next / (3 * sigmas[0]!), afterNext / (3 * sigmas[0]!)] as const;
      return along(first.x, [
        [distance * (1 - weights[0] - weights[1]), first],
        [distance * weights[0], second],
        [distance * weights[1], third],
      ]);
    });
  },
};
