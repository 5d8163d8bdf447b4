import type { Term } from "../../../../tensor/ops.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { SolverContext } from "../../solver.js";

/** Latent and estimates at noise level sigma, and the level to reach. */
export interface Step {
  readonly index: number;
  readonly sigma: number;
  readonly next: number;
  readonly x: Tensor;
  readonly denoised: Tensor;
  /** Estimate of the negative side; `denoised` itself where the method asks for one estimate. */
  readonly uncond: Tensor;
  /** `uncond` of this step and of those before it, the newest first: as many as the method's order at most. */
  readonly estimates: readonly Tensor[];
}

export interface Method {
  /** Noise levels instead of the context's. */
  readonly sigmas?: Float32Array;
  /** Whether each step has an estimate of the negative side (CFG++). */
  readonly separate?: boolean;
  /** Number of steps whose estimates one step uses, this one included; 1 where absent. */
  readonly order?: number;
  /** Tensors that `advance` has made with the context and reads again. */
  readonly kept?: readonly Tensor[];
  /** Returns the terms of the latent at `next`, which is not 0. Keeps no tensor of the step. */
  advance(step: Step): readonly Term[];
}

/** Runs a method of one call of the model a step; a step to noise level 0 is the estimate itself. */
export async function run(x: Tensor, context: SolverContext, method: Method): Promise<Tensor> {
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
