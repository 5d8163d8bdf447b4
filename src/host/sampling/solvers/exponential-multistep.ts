import { expm1, log, square } from "../../../native/elementary.js";
import type { Term } from "../../../tensor/ops.js";
import { ancestral } from "../../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Solver } from "../solver.js";
import { momentWeights, remember, runMultistep, type StepInput } from "./steps.js";

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
    return runMultistep(x, context, {
      separate,
      order: 2,
      advance: (step) => {
        const { index, sigma, next } = step;
        const { down, up } = ancestral(sigma, next, eta);
        const terms =
          reached === undefined || down === 0
            ? firstOrder(step, down)
            : secondOrder(step, down, context.sigmas[index - 1]!, reached);
        // drawn also if unused: the number of draws is part of a sampler's contract
        const noise = context.noise(sigma, next);
        if (up > 0) terms.push([up * s_noise, noise]);
        reached = down;
        return terms;
      },
    });
  },
});

const firstOrder = ({ sigma, x, denoised, uncond }: StepInput, down: number): Term[] => [
  [down / sigma, x],
  [-down / sigma, uncond],
  [1, denoised],
];

function secondOrder(step: StepInput, down: number, previous: number, reached: number): Term[] {
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

/** Estimate at a noise level of the past. */
interface PastEstimate {
  readonly sigma: number;
  readonly denoised: Tensor;
}

const HIGHEST_ORDER = 3;
// Ends at 0.001 without writing into the caller's sigmas, which the reference does.
/** Noise level at which the method ends instead of 0. */
const LAST_SIGMA = Math.fround(0.001);

const lastSigma = (sigmas: Float32Array): number => sigmas.at(-1) || LAST_SIGMA;

/** Scale of the corrections by the step's length h in lambda = -log(sigma). */
type Scale = (h: number) => number;

/**
 * UniPC (arXiv 2302.04867), data prediction, order 3 at most and lower at both ends, each latent corrected by the estimate
 * that the next step needs anyway. It is written in x = clean + sigma * noise for any model, a flow included.
 */
const uniPcSolver = (scale: Scale): Solver => ({
  noise: "none",
  options: {},
  lastSigma,
  async sample(x, context) {
    const { sigmas } = context;
    const steps = sigmas.length - 1;
    if (steps < 1) return x;
    const end = lastSigma(sigmas);
    const order = Math.min(HIGHEST_ORDER, steps - 1);
    const past: PastEstimate[] = [];
    let latent = x;
    for (let index = 0; index < steps; index++) {
      const sigma = sigmas[index]!;
      const step =
        index === 0 ? undefined : stepTo(sigma, past.slice(0, Math.min(order, index, steps + 1 - index)), scale);
      const denoised = await context.denoise(step === undefined ? latent : context.sum(step(latent)), sigma);
      context.report(index, denoised);
      if (step !== undefined) latent = context.combined(step(latent, denoised));
      remember(past, { sigma, denoised }, HIGHEST_ORDER);
      context.keepOnly([latent, ...past.map((one) => one.denoised)]);
    }
    // a single step does not move: the latent is only scaled, as a variance-preserving one, to the last noise level
    const last: Term[] =
      steps === 1
        ? [[Math.sqrt((1 + square(end)) / (1 + square(sigmas[0]!))), latent]]
        : stepTo(end, past.slice(0, 1), scale)(latent);
    return context.combined(last);
  },
});

/**
 * Terms of the step from the newest of `past` to sigma, of the order of its length: of a prediction from a latent, or of
 * the prediction that the estimate there has corrected.
 */
function stepTo(sigma: number, past: readonly PastEstimate[], scale: Scale): (x: Tensor, estimate?: Tensor) => Term[] {
  const [newest, ...older] = past as [PastEstimate, ...PastEstimate[]];
  const h = log(newest.sigma / sigma);
  const nodes = older.map((one) => log(newest.sigma / one.sigma) / h);
  const moments = momentsOf(h, scale(h), past.length);
  return (x, estimate) => {
    const at = estimate === undefined ? nodes : [...nodes, 1];
    const values = older.map((one) => one.denoised);
    if (estimate !== undefined) values.push(estimate);
    // the published simplification: half a slope is exact enough for one of them
    const weights = at.length === 1 ? [scale(h) / 2] : momentWeights(at, moments).map((weight) => weight * scale(h));
    const slopes = weights.map((weight, i) => -weight / at[i]!);
    const rest = slopes.reduce((sum, slope) => sum + slope, 0);
    return [
      [sigma / newest.sigma, x],
      [-expm1(-h) - rest, newest.denoised],
      ...slopes.map((slope, i): Term => [slope, values[i]!]),
    ];
  };
}

/** Integrals that the slopes' weights have to reproduce, of 1, t … in units of the scale. */
function momentsOf(h: number, scale: number, count: number): number[] {
  const moments: number[] = [];
  let factorial = 1;
  let phi = expm1(-h) / -h - 1;
  for (let k = 1; k <= count; k++) {
    moments.push((phi * factorial) / scale);
    factorial *= k + 1;
    phi = phi / -h - 1 / factorial;
  }
  return moments;
}

export const uniPc = uniPcSolver((h) => -h);
export const uniPcBh2 = uniPcSolver((h) => expm1(-h));
