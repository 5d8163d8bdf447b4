import { ancestral, ancestralOf } from "../../../../tensor/sampling/ancestral.js";
import { signalOf } from "../../../../tensor/sampling/exponential.js";
import { isFlow } from "../../../../tensor/sampling/noise-level.js";
import type { Solver } from "../../solver.js";
import { beginChurned, CHURN, type ChurnOptions } from "./churn.js";
import { begin, eulerTo, integrate, noiseTerm } from "./step.js";

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
