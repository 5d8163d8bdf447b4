import { describe, LatentkitError } from "../../../base/errors.js";
import { type Term, weightedSum } from "../../../tensor/ops.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Estimate, LatentTerm, SolverContext } from "../solver.js";

/** One step of a schedule: its number from 0, its noise level and the next. */
export interface Step {
  readonly index: number;
  readonly sigma: number;
  readonly next: number;
}

/** A latent with its estimate: the slope of the path through it, by sigma, is (x - denoised) / sigma. */
export interface Point {
  readonly x: Tensor;
  readonly sigma: number;
  readonly denoised: Estimate;
}

/** Runs `advance` from each noise level to the next: it returns the terms of the next x, and keeps no tensor of the step. */
export async function integrate(
  start: Tensor,
  context: SolverContext,
  advance: (x: Tensor, step: Step) => Promise<readonly LatentTerm[]>,
  sigmas = context.sigmas,
): Promise<Tensor> {
  let x = start;
  for (let index = 0; index + 1 < sigmas.length; index++) {
    x = context.next(await advance(x, { index, sigma: sigmas[index]!, next: sigmas[index + 1]! }));
  }
  return x;
}

/** The point of x at a noise level. */
export async function evaluate(context: SolverContext, x: Tensor, sigma: number): Promise<Point> {
  const { denoised } = await context.estimate(x, sigma);
  return { x, sigma, denoised };
}

/** The point that a step begins at; its estimate is the one that the step reports. */
export async function begin(context: SolverContext, x: Tensor, sigma: number, index: number): Promise<Point> {
  const { denoised } = await context.estimate(x, sigma);
  context.report(index, denoised);
  return { x, sigma, denoised };
}

/** The terms of Euler's step from a point to another noise level, times `scale`, and further terms. */
export function eulerTo(point: Point, to: number, scale = 1, terms: readonly LatentTerm[] = []): LatentTerm[] {
  const { x, sigma, denoised } = point;
  const ratio = to / sigma;
  if (sigma >= COARSE_SIGMA && ratio !== 0 && scale === 1 && terms.length === 0) return coarseStep(point, to);
  if (ratio !== 0) return [[scale * ratio, x], [scale * (1 - ratio), denoised], ...terms];
  return [[scale, denoised], ...terms];
}

// float32 holds such noise so coarsely that a more exact result is another picture than the reference's.
/** Noise level from which on roundings of x are larger than what follows may differ: schedules of zero terminal SNR begin there. */
export const COARSE_SIGMA = 1000;

/** The same step with the roundings of the reference: slope, distance and sum are float32 one by one. */
function coarseStep({ x, sigma, denoised }: Point, to: number): LatentTerm[] {
  const noise = weightedSum([
    [1, x],
    [-1, denoised.tensor],
  ]);
  const slope = weightedSum([[1 / sigma, noise]], noise);
  return [
    [1, x],
    [1, weightedSum([[Math.fround(to - sigma), slope]], slope)],
  ];
}

/** The terms of x and a distance along the slope at each point, times `scale`, and further terms. */
export function along(
  x: Tensor,
  slopes: readonly (readonly [distance: number, point: Point])[],
  scale = 1,
  terms: readonly LatentTerm[] = [],
): LatentTerm[] {
  let own = scale;
  const others: LatentTerm[] = [];
  for (const [distance, point] of slopes) {
    const weight = (scale * distance) / point.sigma;
    if (point.x === x) own += weight;
    else others.push([weight, point.x]);
    others.push([-weight, point.denoised]);
  }
  return [[own, x], ...others, ...terms];
}

/** Noise times a coefficient, as a term. It is drawn also if the coefficient is 0: later draws follow in the stream. */
export function noiseTerm(
  context: SolverContext,
  { sigma, next }: Omit<Step, "index">,
  coefficient: number,
): LatentTerm[] {
  const noise = context.noise(sigma, next);
  return coefficient === 0 ? [] : [[coefficient, noise]];
}

/** Latent and estimates at noise level sigma, and the level to reach. */
export interface StepInput {
  readonly index: number;
  readonly sigma: number;
  readonly next: number;
  readonly x: Tensor;
  readonly denoised: Tensor;
  /** Estimate of the negative side; `denoised` itself if the method asks for one estimate. */
  readonly uncond: Tensor;
  /** `uncond` of this step and of those before it, the newest first: as many as the method's order at most. */
  readonly estimates: readonly Tensor[];
}

export interface Method {
  /** Noise levels instead of the context's. */
  readonly sigmas?: Float32Array;
  /** Whether each step has an estimate of the negative side (CFG++). */
  readonly separate?: boolean;
  /** Number of steps whose estimates one step uses, this one included; 1 if absent. */
  readonly order?: number;
  /** Tensors that `advance` has made with the context and reads again. */
  readonly kept?: readonly Tensor[];
  /** Returns the terms of the latent at `next`, which is not 0. Keeps no tensor of the step. */
  advance(step: StepInput): readonly Term[];
}

/** Runs a method of one call of the model a step; a step to noise level 0 is the estimate itself. */
export async function runMultistep(x: Tensor, context: SolverContext, method: Method): Promise<Tensor> {
  const { sigmas = context.sigmas, separate = false, order = 1, kept = [] } = method;
  const estimates: Tensor[] = [];
  let latent = x;
  for (let index = 0; index + 1 < sigmas.length; index++) {
    const [sigma, next] = [sigmas[index]!, sigmas[index + 1]!];
    const both = separate ? await context.denoiseBoth(latent, sigma) : undefined;
    const denoised = both?.denoised ?? (await context.denoise(latent, sigma));
    const uncond = both?.uncond ?? denoised;
    context.report(index, denoised);
    estimates.unshift(uncond);
    const step = { index, sigma, next, x: latent, denoised, uncond, estimates };
    const terms: readonly Term[] = next === 0 ? [[1, denoised]] : method.advance(step);
    const last = estimates.slice(0, order - 1);
    latent = context.next(terms, [...last, ...kept]);
    estimates.length = last.length;
  }
  return latent;
}

/** Adds a value in front of the newest-first `history`, which holds at most `limit` values after it. */
export function remember<T>(history: T[], value: T, limit: number): void {
  history.unshift(value);
  if (history.length > limit) history.pop();
}

/** Terms of as many coefficients as there are, of the values of a newest-first history. */
export const termsOf = (coefficients: readonly number[], history: readonly Tensor[]): Term[] =>
  coefficients.map((coefficient, i) => [coefficient, history[i]!]);

/** Noise that a step adds first: Algorithm 2 of Karras et al., 2022 (arXiv 2206.00364). */
export interface ChurnOptions {
  /** Share of the noise level to add, over all steps. */
  readonly s_churn: number;
  /** Lowest and highest noise level at which noise is added. */
  readonly s_tmin: number;
  readonly s_tmax: number;
  /** Factor of the noise. */
  readonly s_noise: number;
}

export const CHURN: ChurnOptions = { s_churn: 0, s_tmin: 0, s_tmax: Number.POSITIVE_INFINITY, s_noise: 1 };

/** The point that a step begins at, after the noise of its options; `alwaysDraw` draws noise also if none is added. */
export function beginChurned(
  context: SolverContext,
  x: Tensor,
  step: Step,
  options: ChurnOptions,
  alwaysDraw = false,
): Promise<Point> {
  const { sigma } = step;
  const { s_churn, s_tmin, s_tmax, s_noise } = options;
  const isInside = s_churn > 0 && s_tmin <= sigma && sigma <= s_tmax;
  const gamma = isInside ? Math.min(s_churn / (context.sigmas.length - 1), Math.SQRT2 - 1) : 0;
  const raised = sigma * (1 + gamma);
  const noise = gamma > 0 || alwaysDraw ? context.noise(sigma, raised) : undefined;
  if (gamma === 0) return begin(context, x, sigma, step.index);
  const noisy = context.sum([
    [1, x],
    [s_noise * Math.sqrt(raised * raised - sigma * sigma), noise!],
  ]);
  return begin(context, noisy, raised, step.index);
}

/** Refuses an option of a sampler that is not a finite number above 0. */
export function requirePositive(sampler: string, name: string, value: unknown): void {
  if (typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY) return;
  const message = `${sampler}, ${name}: expected a number above 0, received ${describe(value)}.`;
  throw new LatentkitError("value.out-of-range", message);
}

/** Refuses an eta if noise levels do not fall, by their t: no noise can be added on the way. */
export function requireFalling(
  sampler: string,
  { start, end }: { readonly start: number; readonly end: number },
  eta: number,
): void {
  if (end > start) return;
  const message = `${sampler}: eta must be 0 if sigmas do not fall, received ${eta}.`;
  throw new LatentkitError("value.out-of-range", message);
}

/** Refuses an eta that ends a step below noise level 0, if it has no middle. */
export function requireMiddle(sampler: string, eta: number, sigma: number, down: number): void {
  if (down >= 0) return;
  const below = `the step from sigma ${sigma} would end below 0`;
  const message = `${sampler}, eta: expected a smaller value, received ${eta}: ${below}.`;
  throw new LatentkitError("value.out-of-range", message);
}

/** Fails with value.out-of-range unless an option of a sampler is a whole number of the range. */
export function requireWhole(option: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  const expected = `a whole number from ${min} to ${max}`;
  throw new LatentkitError("value.out-of-range", `${option}: expected ${expected}, received ${describe(value)}.`);
}

/** Fails with value.invalid unless an option of a sampler is one of the names. */
export function requireOneOf(option: string, value: string, names: readonly string[]): void {
  if (names.includes(value)) return;
  const message = `${option}: expected one of ${names.join(", ")}, received ${describe(value)}.`;
  throw new LatentkitError("value.invalid", message);
}

/**
 * Weights w of the nodes with sum of w[j] * nodes[j]^p = moments[p] for every p: integrals of the Lagrange polynomials,
 * where moments[p] is the integral of t^p. Björck and Pereyra's solution of the Vandermonde system, 1970.
 */
export function momentWeights(nodes: readonly number[], moments: readonly number[]): number[] {
  const last = nodes.length - 1;
  const w = moments.slice(0, last + 1);
  for (let k = 0; k < last; k++) {
    for (let i = last; i > k; i--) w[i]! -= nodes[k]! * w[i - 1]!;
  }
  for (let k = last - 1; k >= 0; k--) {
    for (let i = k + 1; i <= last; i++) w[i]! /= nodes[i]! - nodes[i - k - 1]!;
    for (let i = k; i < last; i++) w[i]! -= w[i + 1]!;
  }
  return w;
}
