import type { Term } from "../../../../tensor/ops.js";
import { isFlow } from "../../../../tensor/sampling/noise-level.js";
import { percentToSigma } from "../../../../tensor/sampling/percent-to-sigma.js";
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
}

export interface Method {
  /** Noise levels instead of the context's. */
  readonly sigmas?: Float32Array;
  /** Whether each step has an estimate of the negative side (CFG++). */
  readonly separate?: boolean;
  /** Returns the latent at `next`, which is not 0. */
  advance(step: Step): Tensor;
}

/** Runs a method of one call of the model a step; a step to noise level 0 is the estimate itself. */
export async function run(x: Tensor, context: SolverContext, method: Method): Promise<Tensor> {
  const { sigmas = context.sigmas, separate = false } = method;
  let latent = x;
  for (let index = 0; index + 1 < sigmas.length; index++) {
    const [sigma, next] = [sigmas[index]!, sigmas[index + 1]!];
    const { denoised, uncond } = separate
      ? await context.denoiseBoth(latent, sigma)
      : await context.denoise(latent, sigma).then((one) => ({ denoised: one, uncond: one }));
    context.report(index, denoised);
    latent = next === 0 ? denoised : method.advance({ index, sigma, next, x: latent, denoised, uncond });
  }
  return latent;
}

/** Noise levels with a finite signal-to-noise ratio: a flow's first level of 1 becomes that of 1/10,000 of the way. */
export function finiteSnr({ sampling, sigmas }: SolverContext): Float32Array {
  if (!isFlow(sampling) || sigmas.length < 2 || sigmas[0]! < 1) return sigmas;
  const finite = sigmas.slice();
  finite[0] = percentToSigma(sampling, 1e-4);
  return finite;
}

/** Adds a value in front of the newest-first `history`, which holds at most `limit` values after it. */
export function remember<T>(history: T[], value: T, limit: number): void {
  history.unshift(value);
  if (history.length > limit) history.pop();
}

/** Terms of as many coefficients as there are, of the values of a newest-first history. */
export const termsOf = (coefficients: readonly number[], history: readonly Tensor[]): Term[] =>
  coefficients.map((coefficient, i) => [coefficient, history[i]!]);
