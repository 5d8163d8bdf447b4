import type { Term } from "../../../../tensor/ops.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { SolverContext } from "../../solver.js";
import { momentWeights } from "./moment-weights.js";
import { remember, run, termsOf } from "./run.js";

export interface AdamsMethod {
  /** Number of derivatives that a step uses at most. */
  readonly order: number;
  /** Whether the derivative is that of the negative side (CFG++). */
  readonly separate?: boolean;
  /** Share of the difference between the estimates that a step to this noise level adds; 1 where absent. */
  readonly guidance?: (next: number) => number;
  /** Weights of the newest derivatives, the newest first, for the step from sigmas[index]. */
  weights(index: number, order: number): readonly number[];
}

/**
 * Explicit linear multistep method: x' = x + sum of weight * d + guidance * (denoised - uncond), with the derivative
 * d = (x - uncond) / sigma of the last steps.
 */
export function adams(x: Tensor, context: SolverContext, method: AdamsMethod): Promise<Tensor> {
  const { order, separate, guidance = () => 1 } = method;
  const derivatives: Tensor[] = [];
  return run(x, context, {
    separate,
    kept: derivatives,
    advance: ({ index, sigma, next, x, denoised, uncond }) => {
      const derivative = context.combined([
        [1 / sigma, x],
        [-1 / sigma, uncond],
      ]);
      remember(derivatives, derivative, order);
      const terms: Term[] = [[1, x], ...termsOf(method.weights(index, derivatives.length), derivatives)];
      if (uncond !== denoised) terms.push([guidance(next), denoised], [-guidance(next), uncond]);
      return terms;
    },
  });
}

/** Weights of the derivatives at sigmas[index], sigmas[index - 1] …: integrals of their Lagrange polynomials. */
export function lagrangeWeights(sigmas: Float32Array, index: number, order: number): number[] {
  const sigma = sigmas[index]!;
  const step = sigmas[index + 1]! - sigma;
  const nodes = Array.from({ length: order }, (_, back) => (sigmas[index - back]! - sigma) / step);
  const moments = nodes.map((_, power) => step / (power + 1));
  return momentWeights(nodes, moments);
}
