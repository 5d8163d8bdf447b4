import { exp, expm1, log } from "../../../../native/elementary.js";
import { axpy, weightedSum } from "../../../../tensor/ops.js";
import { ancestral } from "../../../../tensor/sampling/ancestral.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { SolverContext } from "../../solver.js";
import { evaluate, type Point } from "./step.js";

/** A share of a step and the slope of the path by sigma there, (x - denoised) / sigma. */
interface Slope {
  readonly share: number;
  readonly slope: Tensor;
}

// decision 201
const f = Math.fround;

/**
 * One step of DPM-Solver (Lu et al., 2022, arXiv 2206.00927) for clean + sigma * noise, over t = -log(sigma). Each
 * operation rounds to float32, coefficients too, in the order of the reference: what is left of the difference of two
 * solutions, often little more than that rounding, decides on the size of the next step.
 */
export class DpmStep {
  private readonly slope: Tensor;
  private readonly length: number;
  private readonly sigma: number;
  private end: Tensor | undefined;

  constructor(
    private readonly context: SolverContext,
    private readonly first: Point,
    private readonly from: number,
    to: number,
  ) {
    this.slope = slopeOf(context, first);
    this.length = f(to - from);
    this.sigma = sigmaAt(to);
  }

  /** The slope at a share of the step. */
  async second(share: number): Promise<Slope> {
    const way = f(f(share) * this.length);
    const sigma = sigmaAt(f(this.from + way));
    return this.evaluate(share, sigma, this.straight(sigma, way));
  }

  /** The slope at a share of the step, from that at an earlier one. */
  async third(share: number, second: Slope): Promise<Slope> {
    const way = f(f(share) * this.length);
    const sigma = sigmaAt(f(this.from + way));
    const distance = f(f(sigma * f(share / second.share)) * curve(way));
    return this.evaluate(share, sigma, this.bent(this.straight(sigma, way), distance, second));
  }

  /** The end by DPM-Solver-1. */
  end1(): Tensor {
    this.end ??= this.straight(this.sigma, this.length);
    return this.end;
  }

  /** The end by DPM-Solver-2. */
  end2(second: Slope): Tensor {
    const distance = f(f(this.sigma / f(2 * second.share)) * f(expm1(this.length)));
    return this.bent(this.end1(), distance, second);
  }

  /** The end by DPM-Solver-3. */
  end3(third: Slope): Tensor {
    return this.bent(this.end1(), f(f(this.sigma / f(third.share)) * curve(this.length)), third);
  }

  /** Euler's step over a way to a noise level. */
  private straight(sigma: number, way: number): Tensor {
    return this.context.written((out) => axpy(this.first.x, this.slope, -f(sigma * f(expm1(way))), out));
  }

  /** A latent and a distance back along the change of the slope. */
  private bent(x: Tensor, distance: number, { slope }: Slope): Tensor {
    const change = this.context.written((out) => axpy(slope, this.slope, -1, out));
    return axpy(x, change, -distance, change);
  }

  private async evaluate(share: number, sigma: number, x: Tensor): Promise<Slope> {
    return { share, slope: slopeOf(this.context, await evaluate(this.context, x, sigma)) };
  }
}

/** Noise level at t, in float32. */
export const sigmaAt = (t: number): number => f(exp(-t));

/** (exp(way) - 1) / way - 1, of which 0 has the limit 0. */
const curve = (way: number): number => (way === 0 ? 0 : f(f(f(expm1(way)) / way) - 1));

function slopeOf(context: SolverContext, { x, sigma, denoised }: Point): Tensor {
  const estimate = context.combined([[1, denoised]]);
  const difference = context.written((out) => axpy(x, estimate, -1, out));
  // 1 / sigma in double and one rounding: the quotient
  return weightedSum([[1 / sigma, difference]], difference);
}

/** t at the first and at the smallest positive noise level of a schedule, between which DPM-Solver makes its own. */
export function rangeOf(sigmas: Float32Array): { readonly start: number; readonly end: number } {
  const last = sigmas[sigmas.length - 1]!;
  return { start: timeOf(sigmas[0]!), end: timeOf(last === 0 ? sigmas[sigmas.length - 2]! : last) };
}

const timeOf = (sigma: number): number => f(-log(sigma));

/** t below the next one at which an ancestral step ends, no further down than the end, and the noise back up. */
export function ancestralTime(t: number, next: number, end: number, eta: number): { down: number; up: number } {
  if (eta === 0) return { down: next, up: 0 };
  const sigma = sigmaAt(next);
  const down = Math.min(end, timeOf(ancestral(sigmaAt(t), sigma, eta).down));
  const reached = sigmaAt(down);
  return { down, up: Math.sqrt(Math.max(0, (sigma - reached) * (sigma + reached))) };
}

/** x and new noise for the way from one t to the next, times a factor; noise is drawn where that is 0 too. */
export function withNoise(context: SolverContext, x: Tensor, t: number, next: number, factor: number): Tensor {
  const noise = context.noise(sigmaAt(t), sigmaAt(next));
  return factor === 0 ? x : axpy(x, noise, factor, noise);
}
