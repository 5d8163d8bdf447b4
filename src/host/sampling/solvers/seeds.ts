import { exp, expm1 } from "../../../native/elementary.js";
import type { Term } from "../../../tensor/ops.js";
import {
  firstWeight,
  halfLogSnr,
  secondWeight,
  sigmaOfHalfLogSnr,
  signalOf,
  withSignal,
} from "../../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Estimate, LatentTerm, Solver, SolverContext } from "../solver.js";
import { ANCESTRAL, type AncestralOptions } from "./euler.js";
import { begin, integrate, requirePositive, type Step } from "./steps.js";

// SEEDS: exponential integrators of the reverse process (Gonzalez et al., 2023, arXiv 2305.14267), over half-log-SNR.

interface Seeds2Options extends AncestralOptions {
  /** Share of a step at which the second estimate is made. */
  readonly r: number;
  /** Weights of the estimates: a line through them at its middle (phi_1), or the integral of that line (phi_2). */
  readonly solver_type: "phi_1" | "phi_2";
}

interface Seeds3Options extends AncestralOptions {
  /** Shares of a step at which the second and the third estimate are made. */
  readonly r_1: number;
  readonly r_2: number;
}

/** SEEDS-2: two estimates a step. */
export const seeds2: Solver<Seeds2Options> = {
  noise: "stream",
  options: { ...ANCESTRAL, r: 0.5, solver_type: "phi_1" },
  sample: async (start, context, options) => {
    requirePositive("seeds_2", "r", options.r);
    return stages(start, context, options, (way) => twoStages(way, options));
  },
};

/** SEEDS-3: three estimates a step. */
export const seeds3: Solver<Seeds3Options> = {
  noise: "stream",
  options: { ...ANCESTRAL, r_1: 1 / 3, r_2: 2 / 3 },
  sample: async (start, context, options) => {
    requirePositive("seeds_3", "r_1", options.r_1);
    requirePositive("seeds_3", "r_2", options.r_2);
    return stages(start, context, options, (way) => threeStages(way, options));
  },
};

// decisions: Some samplers and nodes are unchecked
/** The exponential Heun method of second order for the estimate: `seeds2` with its second estimate at the end. */
export const expHeun2X0: Solver = {
  noise: "none",
  options: {},
  sample: (start, context) => seeds2.sample(start, context, { eta: 0, s_noise: 0, r: 1, solver_type: "phi_2" }),
};

/** `expHeun2X0` with the noise of the reverse process. */
export const expHeun2X0Sde: Solver<AncestralOptions> = {
  noise: "stream",
  options: ANCESTRAL,
  sample: (start, context, options) => seeds2.sample(start, context, { ...options, r: 1, solver_type: "phi_2" }),
};

/** Runs the stages of each step; a step to noise level 0 returns its first estimate. */
function stages(
  start: Tensor,
  context: SolverContext,
  options: AncestralOptions,
  run: (way: Way) => Promise<readonly LatentTerm[]>,
): Promise<Tensor> {
  const advance = async (x: Tensor, step: Step): Promise<readonly LatentTerm[]> => {
    const { denoised } = await begin(context, x, step.sigma, step.index);
    return step.next === 0 ? [[1, denoised]] : run(new Way(context, options, x, step, denoised));
  };
  return integrate(start, context, advance, withSignal(context.sampling, context.sigmas));
}

async function twoStages(way: Way, { r, solver_type }: Seeds2Options): Promise<readonly LatentTerm[]> {
  const full = firstWeight(way.reach);
  const second = await way.estimateAt(r, [[firstWeight(r * way.reach), way.denoised]]);
  const weight = solver_type === "phi_1" ? full / (2 * r) : secondWeight(way.reach) / r;
  return way.latentAt(1, way.step.next, [
    [full - weight, way.denoised],
    [weight, second],
  ]);
}

async function threeStages(way: Way, { r_1, r_2 }: Seeds3Options): Promise<readonly LatentTerm[]> {
  const { denoised, reach } = way;
  const second = await way.estimateAt(r_1, [[firstWeight(r_1 * reach), denoised]]);
  const inner = (r_2 / r_1) * secondWeight(r_2 * reach);
  const third = await way.estimateAt(r_2, [
    [firstWeight(r_2 * reach) - inner, denoised],
    [inner, second],
  ]);
  const weight = secondWeight(reach) / r_2;
  return way.latentAt(1, way.step.next, [
    [firstWeight(reach) - weight, denoised],
    [weight, third],
  ]);
}

/** The way of one step by half-log-SNR, from 0 at its noise level to 1 at the next, and the noise on it. */
class Way {
  /** Length of the way times 1 + eta, over which estimates are weighted. */
  readonly reach: number;
  readonly #from: number;
  readonly #length: number;
  readonly #noise: FadingNoise;
  readonly #context: SolverContext;
  readonly #options: AncestralOptions;
  readonly #x: Tensor;

  constructor(
    context: SolverContext,
    options: AncestralOptions,
    x: Tensor,
    readonly step: Step,
    readonly denoised: Estimate,
  ) {
    this.#context = context;
    this.#options = options;
    this.#x = x;
    this.#from = halfLogSnr(context.sampling, step.sigma);
    this.#length = halfLogSnr(context.sampling, step.next) - this.#from;
    this.reach = this.#length * (1 + options.eta);
    this.#noise = new FadingNoise(context, step.sigma);
  }

  /** The estimate at a share of the way, from a weighted sum of earlier ones. */
  async estimateAt(share: number, estimates: readonly LatentTerm[]): Promise<Estimate> {
    const sigma = sigmaOfHalfLogSnr(this.#context.sampling, this.#from + share * this.#length);
    return (await this.#context.estimate(this.#context.sum(this.latentAt(share, sigma, estimates)), sigma)).denoised;
  }

  /** The terms of the latent at a share of the way and its noise level. */
  latentAt(share: number, sigma: number, estimates: readonly LatentTerm[]): LatentTerm[] {
    const { eta, s_noise } = this.#options;
    const faded = share * this.#length * eta;
    const signal = signalOf(this.#context.sampling, sigma);
    const terms: LatentTerm[] = [[(sigma / this.step.sigma) * exp(-faded), this.#x]];
    for (const [weight, tensor] of estimates) if (weight !== 0) terms.push([signal * weight, tensor]);
    if (eta > 0 && s_noise > 0) terms.push(...this.#noise.advanced(sigma, faded, sigma * s_noise));
    return terms;
  }
}

/** Noise of unit variance along a way: what it was fades by exp(-distance), and new noise takes the rest. */
class FadingNoise {
  readonly #draws: { coefficient: number; readonly noise: Tensor }[] = [];
  #distance = 0;
  readonly #context: SolverContext;
  #sigma: number;

  constructor(context: SolverContext, sigma: number) {
    this.#context = context;
    this.#sigma = sigma;
  }

  /** The noise at a noise level and its distance from the beginning of the way, times `scale`, as terms. */
  advanced(sigma: number, distance: number, scale: number): Term[] {
    const passed = distance - this.#distance;
    for (const draw of this.#draws) draw.coefficient *= exp(-passed);
    // of a way of no length too: later draws follow in the stream
    const noise = this.#context.noise(this.#sigma, sigma);
    this.#draws.push({ coefficient: Math.sqrt(-expm1(-2 * passed)), noise });
    this.#sigma = sigma;
    this.#distance = distance;
    return this.#draws.filter((draw) => draw.coefficient > 0).map((draw) => [draw.coefficient * scale, draw.noise]);
  }
}
