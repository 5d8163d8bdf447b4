import { weightedSum } from "../../../../tensor/ops.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { SolverContext } from "../../solver.js";
import type { Estimate, LatentTerm } from "../../sum.js";

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

// decision 225
/** Noise level from which on roundings of x are larger than what follows may differ: schedules of zero terminal SNR begin there. */
const COARSE_SIGMA = 1000;

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

/** Noise times a coefficient, as a term. It is drawn where the coefficient is 0 too: later draws follow in the stream. */
export function noiseTerm(
  context: SolverContext,
  { sigma, next }: Omit<Step, "index">,
  coefficient: number,
): LatentTerm[] {
  const noise = context.noise(sigma, next);
  return coefficient === 0 ? [] : [[coefficient, noise]];
}
