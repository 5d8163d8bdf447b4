import type { Tensor } from "../../../../tensor/tensor.js";
import type { SolverContext } from "../../solver.js";
import { begin, type Point, type Step } from "./step.js";

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

/** The point that a step begins at, after the noise of its options; `alwaysDraw` draws noise also where none is added. */
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
