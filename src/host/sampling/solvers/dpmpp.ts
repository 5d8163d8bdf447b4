import { exp, expm1, log } from "../../../native/elementary.js";
import type { Term } from "../../../tensor/ops.js";
import type { ModelSampling } from "../../../tensor/sampling/model-sampling.js";
import {
  ancestral,
  ancestral32,
  ancestralOf,
  halfLogSnr,
  isFlow,
  sigmaOfHalfLogSnr,
  signalOf,
  withSignal,
} from "../../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { LatentTerm, Solver, SolverContext } from "../solver.js";
import { ANCESTRAL, type AncestralOptions } from "./euler.js";
import {
  begin,
  eulerTo,
  evaluate,
  integrate,
  noiseTerm,
  remember,
  requireMiddle,
  requireOneOf,
  requirePositive,
  runMultistep,
  type Step,
  termsOf,
} from "./steps.js";

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

/**
 * DPM-Solver++(2M) (arXiv 2211.01095) in lambda = -log(sigma), of any model. With an estimate of the negative side (U)
 * the guided one (D) is the clean part: x' = D + exp(-h) * (x - U) + (1 - exp(-h)) / (2 * r) * (D - U of the step before).
 */
const dpmpp2mSolver = (separate: boolean): Solver => ({
  noise: "none",
  options: {},
  async sample(x, context) {
    const { sigmas } = context;
    return runMultistep(x, context, {
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

interface SdeOptions {
  /** Share of the noise that is renewed; 0 makes the method deterministic. */
  eta: number;
  s_noise: number;
}

interface MidpointOptions extends SdeOptions {
  solver_type: "midpoint" | "heun";
}

/**
 * Corrections of the first-order step: coefficients of the newest estimates, the newest first, in units of the signal
 * at the next noise level. steps: lengths in half the logarithm of the signal-to-noise ratio, this one first.
 */
type Corrections = (steps: readonly number[], eta: number) => readonly number[];

/** DPM-Solver++ for the reverse SDE (arXiv 2211.01095), as extended in k-diffusion. */
function integrateSde(x: Tensor, context: SolverContext, options: SdeOptions, order: number, correct: Corrections) {
  const { eta, s_noise } = options;
  const sigmas = withSignal(context.sampling, context.sigmas);
  const steps: number[] = [];
  return runMultistep(x, context, {
    sigmas,
    order,
    advance: ({ sigma, next, x, estimates }) => {
      const lambda = halfLogSnr(context.sampling, next);
      const h = lambda - halfLogSnr(context.sampling, sigma);
      remember(steps, h, order);
      const signal = next * exp(lambda);
      const [first = 0, ...older] = correct(steps, eta).map((coefficient) => signal * coefficient);
      const terms: Term[] = [
        [(next / sigma) * exp(-h * eta), x],
        ...termsOf([first - signal * expm1(-h * (eta + 1)), ...older], estimates),
      ];
      if (eta > 0 && s_noise > 0) {
        terms.push([next * Math.sqrt(-expm1(-2 * h * eta)) * s_noise, context.noise(sigma, next)]);
      }
      return terms;
    },
  });
}

const correct2m =
  (solver: "midpoint" | "heun"): Corrections =>
  ([h, before], eta) => {
    if (before === undefined) return [];
    const length = h! * (eta + 1);
    const slope = solver === "heun" ? expm1(-length) / length + 1 : -expm1(-length) / 2;
    const scaled = (slope * h!) / before;
    return [scaled, -scaled];
  };

const correct3m: Corrections = ([h, h1, h2], eta) => {
  if (h1 === undefined) return [];
  const length = h! * (eta + 1);
  const phi2 = expm1(-length) / length + 1;
  const r0 = h1 / h!;
  if (h2 === undefined) return [phi2 / r0, -phi2 / r0];
  const phi3 = phi2 / length - 0.5;
  const r1 = h2 / h!;
  // both derivatives are combinations of the slopes (D - D1) / r0 and (D1 - D2) / r1
  const older = (phi3 - phi2 * r0) / (r0 + r1);
  const newer = phi2 - older;
  return [newer / r0, older / r1 - newer / r0, -older / r1];
};

const dpmpp2mSdeSolver = (name: string, solver_type: "midpoint" | "heun"): Solver<MidpointOptions> => ({
  noise: "brownian",
  options: { eta: 1, s_noise: 1, solver_type },
  async sample(x, context, options) {
    requireOneOf(`${name}, solver_type`, options.solver_type, ["midpoint", "heun"]);
    return integrateSde(x, context, options, 2, correct2m(options.solver_type));
  },
});

export const dpmpp2mSde = dpmpp2mSdeSolver("dpmpp_2m_sde", "midpoint");
export const dpmpp2mSdeHeun = dpmpp2mSdeSolver("dpmpp_2m_sde_heun", "heun");

export const dpmpp3mSde: Solver<SdeOptions> = {
  noise: "brownian",
  options: { eta: 1, s_noise: 1 },
  sample: async (x, context, options) => integrateSde(x, context, options, 3, correct3m),
};
