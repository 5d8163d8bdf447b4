import { expm1, log } from "../../../../native/elementary.js";
import type { Term } from "../../../../tensor/ops.js";
import { ancestral } from "../../../../tensor/sampling/ancestral.js";
import type { Solver } from "../../solver.js";
import { run, type Step } from "./run.js";

interface ResOptions {
  /** Share of the noise that is renewed; absent is 0. */
  eta?: number;
  s_noise: number;
}

/** Second-order exponential integrator of the refined solver (arXiv 2308.02157), in lambda = -log(sigma). */
const resSolver = (options: ResOptions, separate: boolean): Solver<ResOptions> => ({
  noise: "stream",
  options,
  async sample(x, context, { eta = 0, s_noise }) {
    // the noise level that the step before reached without its new noise
    let reached: number | undefined;
    return run(x, context, {
      separate,
      order: 2,
      advance: (step) => {
        const { index, sigma, next } = step;
        const { down, up } = ancestral(sigma, next, eta);
        const terms =
          reached === undefined || down === 0
            ? firstOrder(step, down)
            : secondOrder(step, down, context.sigmas[index - 1]!, reached);
        // drawn also where unused: the number of draws is part of a sampler's contract
        const noise = context.noise(sigma, next);
        if (up > 0) terms.push([up * s_noise, noise]);
        reached = down;
        return terms;
      },
    });
  },
});

const firstOrder = ({ sigma, x, denoised, uncond }: Step, down: number): Term[] => [
  [down / sigma, x],
  [-down / sigma, uncond],
  [1, denoised],
];

function secondOrder(step: Step, down: number, previous: number, reached: number): Term[] {
  const { sigma, x, denoised, uncond, estimates } = step;
  const h = log(sigma / down);
  const c2 = log(reached / previous) / h;
  const phi1 = -expm1(-h) / h;
  const phi2 = (1 - phi1) / h;
  const decay = down / sigma;
  return [
    [decay, x],
    [decay, denoised],
    [-decay + h * finite(phi1 - phi2 / c2), uncond],
    [h * finite(phi2 / c2), estimates[1]!],
  ];
}

/** A step of length 0 divides 0 by 0, and adds nothing. */
const finite = (value: number): number => (Number.isNaN(value) ? 0 : value);

export const resMultistep = resSolver({ s_noise: 1 }, false);
export const resMultistepCfgPp = resSolver({ s_noise: 1 }, true);
export const resMultistepAncestral = resSolver({ eta: 1, s_noise: 1 }, false);
export const resMultistepAncestralCfgPp = resSolver({ eta: 1, s_noise: 1 }, true);
