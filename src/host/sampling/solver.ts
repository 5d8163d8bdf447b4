import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import type { Sampler } from "../../tensor/sampling/sigmas.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { Estimate, LatentTerm } from "./sum.js";

/** A sampler by its name, with options that replace the defaults of its solver: the value of a SAMPLER socket. */
export interface SamplerChoice {
  readonly sampler: Sampler;
  readonly options: Readonly<Record<string, unknown>>;
}

/**
 * Source of a solver's own noise. stream: a CPU generator of the run's seed plus 1. global: the generator that drew the
 * initial noise, from where that stopped. brownian: one path over all noise levels, of the run's seed.
 */
export type NoiseKind = "none" | "stream" | "global" | "brownian";

/** Estimates of the clean latent, under guidance and of only the negative side. */
export interface Guided {
  readonly denoised: Tensor;
  readonly uncond: Tensor;
}

/** Everything that a solver works with. It drops x once the estimate is there, and never changes an x that it receives. */
export interface SolverContext {
  readonly sampling: ModelSampling;
  /** Falling noise levels, one more than steps; the last need not be 0. */
  readonly sigmas: Float32Array;
  /** Returns the estimate of the clean latent of x at noise level sigma. */
  denoise(x: Tensor, sigma: number): Promise<Tensor>;
  /** `denoise`, as the terms that guidance adds up: for a step that reads it once or twice and does not keep it. */
  estimate(x: Tensor, sigma: number): Promise<{ readonly denoised: Estimate }>;
  /** `denoise`, with the estimate of the negative side, which is computed also if cfg is 1. */
  denoiseBoth(x: Tensor, sigma: number): Promise<Guided>;
  /** Draws N(0, 1) of the latent's shape for the way from one noise level to the next. */
  noise(sigma: number, next: number): Tensor;
  /** Returns the weighted sum of one term or more as a latent; a single tensor of coefficient 1 is returned itself. */
  sum(terms: readonly LatentTerm[]): Tensor;
  /**
   * The `sum` that the next step begins with, often in the memory of x. It takes back, as `keepOnly`, all latents but this
   * one and `kept`.
   */
  next(terms: readonly LatentTerm[], kept?: readonly Tensor[]): Tensor;
  /** `sum` for a value that calls of the model do not read, such as a slope. */
  combined(terms: readonly LatentTerm[]): Tensor;
  /** A latent that `write` computes, in memory of the run if it gets some. */
  written(write: (out: Tensor | undefined) => Tensor): Tensor;
  /** Reclaims all returned latents except these: the solver no longer reads the others, and later ones reuse their memory. */
  keepOnly(kept: readonly Tensor[]): void;
  /** Reports the estimate of a step, from 0; the last one becomes the denoised output of custom sampling. */
  report(step: number, denoised: Tensor | Estimate): void;
}

/** A method that integrates from the first to the last noise level. Scalars are doubles, latents float32. */
export interface Solver<Options extends object = object> {
  readonly noise: NoiseKind;
  /** Default of every option. */
  readonly options: Options;
  /** Noise level of the result if it can differ from the last of `sigmas`, which a flow's result is then divided by. */
  lastSigma?(sigmas: Float32Array): number;
  /** Integrates x [B, C, H, W] from sigmas[0] to the last one. */
  sample(x: Tensor, context: SolverContext, options: Options): Promise<Tensor>;
}
