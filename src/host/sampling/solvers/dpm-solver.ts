import { describe, LatentkitError } from "../../../base/errors.js";
import { atan, exp, expm1, log, pow } from "../../../native/elementary.js";
import { axpy, scaledError, weightedSum } from "../../../tensor/ops.js";
import { ancestral, ancestralOf } from "../../../tensor/sampling/noise-level.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Solver, SolverContext } from "../solver.js";
import { ANCESTRAL, type AncestralOptions } from "./euler.js";
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
  type Point,
  requireFalling,
  requireMiddle,
  requirePositive,
} from "./steps.js";

/** DPM-Solver-Fast: as many model calls as the schedule has steps, in steps of third order of equal length in log(sigma). */
export const dpmFast: Solver<AncestralOptions> = {
  noise: "stream",
  options: { eta: 0, s_noise: 1 },
  sample: async (start, context, { eta, s_noise }) => {
    const calls = context.sigmas.length - 1;
    if (calls < 1) return start;
    const range = rangeOf(context.sigmas);
    if (eta !== 0) requireFalling("dpm_fast", range, eta);
    const orders = ordersOf(calls);
    const length = range.end - range.start;
    let x = start;
    for (const [index, order] of orders.entries()) {
      const t = f32(range.start + (length * index) / orders.length);
      const next = index + 1 === orders.length ? range.end : f32(range.start + (length * (index + 1)) / orders.length);
      const first = await begin(context, x, sigmaAt(t), index);
      const { down, up } = ancestralTime(t, next, range.end, eta);
      const step = new DpmStep(context, first, t, down);
      const end = order === 1 ? step.end1() : (await bothOrders(step, order)).high();
      x = withNoise(context, end, t, next, s_noise * up);
      context.keepOnly([x]);
    }
    return x;
  },
};

/** Orders of the steps: as many of 3 as fit, and 2 and 1 so that their sum is the number of calls. */
function ordersOf(calls: number): number[] {
  const rest = calls % 3 === 0 ? [2, 1] : [calls % 3];
  return [...new Array<number>(Math.floor(calls / 3) + 1 - rest.length).fill(3), ...rest];
}

interface DpmAdaptiveOptions extends AncestralOptions {
  /** Size of the first step. */
  readonly h_init: number;
  /** Proportional, integral and derivative coefficients of the step's size. */
  readonly pcoeff: number;
  readonly icoeff: number;
  readonly dcoeff: number;
  /** Least factor of the size, proposed for the next step, at which a step is accepted. */
  readonly accept_safety: number;
  /** Order of the solver, 2 or 3; the error is the difference to that of one order less. */
  readonly order: number;
  /** Relative and absolute error that a step may have. */
  readonly rtol: number;
  readonly atol: number;
}

/** Repetitions of one step, in a row, after which no size is small enough: each makes it smaller. */
const MOST_REJECTIONS = 100;

/** Steps that a run takes at most, repeated ones included. */
const MOST_STEPS = 10_000;

/** Distance from the end, in log(sigma), at which a run is complete. */
const NEAR_END = 1e-5;

/** DPM-Solver-12 or 23: steps sized to bound their error, regardless of the number in the schedule. */
export const dpmAdaptive: Solver<DpmAdaptiveOptions> = {
  noise: "stream",
  options: {
    order: 3,
    rtol: 0.05,
    atol: 0.0078,
    h_init: 0.05,
    pcoeff: 0,
    icoeff: 1,
    dcoeff: 0,
    accept_safety: 0.81,
    eta: 0,
    s_noise: 1,
  },
  sample: async (start, context, options) => {
    const { order, eta } = options;
    if (order !== 2 && order !== 3) {
      const message = `dpm_adaptive, order: expected 2 or 3, received ${describe(order)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    requirePositive("dpm_adaptive", "h_init", options.h_init);
    if (context.sigmas.length < 2) return start;
    const range = rangeOf(context.sigmas);
    if (eta !== 0) requireFalling("dpm_adaptive", range, eta);
    return adapt(start, context, options, range);
  },
};

async function adapt(
  start: Tensor,
  context: SolverContext,
  options: DpmAdaptiveOptions,
  range: { readonly start: number; readonly end: number },
): Promise<Tensor> {
  const { order, rtol, atol, eta, s_noise } = options;
  const forward = range.end > range.start;
  const nearer = forward ? Math.min : Math.max;
  const size = new StepSize(options, eta ? 1.5 : order, forward);
  let [x, previous] = [start, start];
  let rejections = 0;
  let t = range.start;
  for (let index = 0; forward ? t < range.end - NEAR_END : t > range.end + NEAR_END; index++) {
    const next = nearer(range.end, f32(t + size.size));
    const first = await evaluate(context, x, sigmaAt(t));
    const { down, up } = ancestralTime(t, next, range.end, eta);
    const ends = await bothOrders(new DpmStep(context, first, t, down), order);
    const [low, high] = [ends.low(), ends.high()];
    const error = scaledError(low, high, previous, atol, rtol);
    rejections = size.accepts(error) ? 0 : rejections + 1;
    requireProgress(error, first.sigma, rejections, next !== t);
    if (index === MOST_STEPS)
      throw stopped(`stopped after ${MOST_STEPS} steps at sigma ${first.sigma}; raise rtol or atol`);
    context.report(index, first.denoised);
    if (rejections === 0) {
      previous = low;
      x = withNoise(context, high, t, next, s_noise * up);
      t = next;
    }
    context.keepOnly([x, previous]);
  }
  return x;
}

/** The end of a step by the solver of this order, 2 or 3, and by that of one less, which share their points. */
async function bothOrders(step: DpmStep, order: number): Promise<{ low(): Tensor; high(): Tensor }> {
  if (order === 2) {
    const middle = await step.second(1 / 2);
    return { low: () => step.end1(), high: () => step.end2(middle) };
  }
  const second = await step.second(1 / 3);
  const third = await step.third(2 / 3, second);
  return { low: () => step.end2(second), high: () => step.end3(third) };
}

/** Refuses a run that would never end. */
function requireProgress(error: number, sigma: number, rejections: number, hasMoved: boolean): void {
  if (Number.isFinite(error) && rejections < MOST_REJECTIONS && hasMoved) return;
  throw stopped(`no progress at sigma ${sigma} (error ${error}); raise rtol or atol, or check the model`);
}

const stopped = (reason: string): LatentkitError =>
  new LatentkitError("value.out-of-range", `dpm_adaptive: ${reason}.`);

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

/** A share of a step and the slope of the path by sigma there, (x - denoised) / sigma. */
interface Slope {
  readonly share: number;
  readonly slope: Tensor;
}

// Each operation is rounded in the reference's order: the step size follows from a difference little above rounding.
const f32 = Math.fround;

/**
 * One step of DPM-Solver (Lu et al., 2022, arXiv 2206.00927) for clean + sigma * noise, over t = -log(sigma). Each
 * operation rounds to float32, coefficients too, in the order of the reference: what is left of the difference of two
 * solutions, often little more than that rounding, decides on the size of the next step.
 */
class DpmStep {
  readonly #slope: Tensor;
  readonly #length: number;
  readonly #sigma: number;
  #end: Tensor | undefined;
  readonly #context: SolverContext;
  readonly #first: Point;
  readonly #from: number;

  constructor(context: SolverContext, first: Point, from: number, to: number) {
    this.#context = context;
    this.#first = first;
    this.#from = from;
    this.#slope = slopeOf(context, first);
    this.#length = f32(to - from);
    this.#sigma = sigmaAt(to);
  }

  /** The slope at a share of the step. */
  async second(share: number): Promise<Slope> {
    const way = f32(f32(share) * this.#length);
    const sigma = sigmaAt(f32(this.#from + way));
    return this.#evaluate(share, sigma, this.#straight(sigma, way));
  }

  /** The slope at a share of the step, from that at an earlier one. */
  async third(share: number, second: Slope): Promise<Slope> {
    const way = f32(f32(share) * this.#length);
    const sigma = sigmaAt(f32(this.#from + way));
    const distance = f32(f32(sigma * f32(share / second.share)) * curve(way));
    return this.#evaluate(share, sigma, this.#bent(this.#straight(sigma, way), distance, second));
  }

  /** The end by DPM-Solver-1. */
  end1(): Tensor {
    this.#end ??= this.#straight(this.#sigma, this.#length);
    return this.#end;
  }

  /** The end by DPM-Solver-2. */
  end2(second: Slope): Tensor {
    const distance = f32(f32(this.#sigma / f32(2 * second.share)) * f32(expm1(this.#length)));
    return this.#bent(this.end1(), distance, second);
  }

  /** The end by DPM-Solver-3. */
  end3(third: Slope): Tensor {
    return this.#bent(this.end1(), f32(f32(this.#sigma / f32(third.share)) * curve(this.#length)), third);
  }

  /** Euler's step over a way to a noise level. */
  #straight(sigma: number, way: number): Tensor {
    return this.#context.written((out) => axpy(this.#first.x, this.#slope, -f32(sigma * f32(expm1(way))), out));
  }

  /** A latent and a distance back along the change of the slope. */
  #bent(x: Tensor, distance: number, { slope }: Slope): Tensor {
    const change = this.#context.written((out) => axpy(slope, this.#slope, -1, out));
    return axpy(x, change, -distance, change);
  }

  async #evaluate(share: number, sigma: number, x: Tensor): Promise<Slope> {
    return { share, slope: slopeOf(this.#context, await evaluate(this.#context, x, sigma)) };
  }
}

/** Noise level at t, in float32. */
const sigmaAt = (t: number): number => f32(exp(-t));

/** (exp(way) - 1) / way - 1, whose limit at 0 is 0. */
const curve = (way: number): number => (way === 0 ? 0 : f32(f32(f32(expm1(way)) / way) - 1));

function slopeOf(context: SolverContext, { x, sigma, denoised }: Point): Tensor {
  const estimate = context.combined([[1, denoised]]);
  const difference = context.written((out) => axpy(x, estimate, -1, out));
  // 1 / sigma in double and one rounding: the quotient
  return weightedSum([[1 / sigma, difference]], difference);
}

/** t at the first and at the smallest positive noise level of a schedule, between which DPM-Solver makes its own. */
function rangeOf(sigmas: Float32Array): { readonly start: number; readonly end: number } {
  const last = sigmas[sigmas.length - 1]!;
  return { start: timeOf(sigmas[0]!), end: timeOf(last === 0 ? sigmas[sigmas.length - 2]! : last) };
}

const timeOf = (sigma: number): number => f32(-log(sigma));

/** t below the next one at which an ancestral step ends, no further down than the end, and the noise back up. */
function ancestralTime(t: number, next: number, end: number, eta: number): { down: number; up: number } {
  if (eta === 0) return { down: next, up: 0 };
  const sigma = sigmaAt(next);
  const down = Math.min(end, timeOf(ancestral(sigmaAt(t), sigma, eta).down));
  const reached = sigmaAt(down);
  return { down, up: Math.sqrt(Math.max(0, (sigma - reached) * (sigma + reached))) };
}

/** x and new noise for the way from one t to the next, times a factor; noise is drawn also if that is 0. */
function withNoise(context: SolverContext, x: Tensor, t: number, next: number, factor: number): Tensor {
  const noise = context.noise(sigmaAt(t), sigmaAt(next));
  return factor === 0 ? x : axpy(x, noise, factor, noise);
}

/** Controller of a step's size by the errors of the last three steps (Söderlind, 2003), as k-diffusion has it. */
class StepSize {
  size: number;
  readonly #exponents: readonly [number, number, number];
  readonly #acceptFrom: number;
  /** 1 / error of this step and of the two accepted before it. */
  #inverses: [number, number, number] | undefined;

  constructor({ h_init, pcoeff, icoeff, dcoeff, accept_safety }: DpmAdaptiveOptions, order: number, forward: boolean) {
    this.size = forward ? Math.abs(h_init) : -Math.abs(h_init);
    this.#exponents = [(pcoeff + icoeff + dcoeff) / order, -(pcoeff + 2 * dcoeff) / order, dcoeff / order];
    this.#acceptFrom = accept_safety;
  }

  /** Whether a step of this error is accepted; sets the size of the next one, or of its repetition. */
  accepts(error: number): boolean {
    const inverse = 1 / (1e-8 + error);
    const [, last, lastButOne] = this.#inverses ?? [inverse, inverse, inverse];
    const [a, b, c] = this.#exponents;
    const factor = 1 + atan(pow(inverse, a) * pow(last, b) * pow(lastButOne, c) - 1);
    const isAccepted = factor >= this.#acceptFrom;
    this.#inverses = isAccepted ? [inverse, inverse, last] : [inverse, last, lastButOne];
    this.size *= factor;
    return isAccepted;
  }
}
