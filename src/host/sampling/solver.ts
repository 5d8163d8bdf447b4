import { repeatedSum, type Term, weightedSum } from "../../tensor/ops.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import type { Sampler } from "../../tensor/sampling/sigmas.js";
import { Tensor } from "../../tensor/tensor.js";

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

/** Terms that one weighted sum takes. */
const MOST_TERMS = 8;

// decisions: A step is one sum in float32
/**
 * An estimate of the clean latent as a weighted sum of the model's outputs: a step adds it to its other terms in one pass,
 * whether the sum itself has been read or not.
 */
export class Estimate {
  #values: Tensor | undefined;

  constructor(readonly terms: readonly Term[]) {}

  /** The sum, computed once. */
  get tensor(): Tensor {
    this.#values ??= sumOf(this.terms);
    return this.#values;
  }
}

/** A coefficient and a latent: a tensor, or an estimate, which stands for its own terms. */
export type LatentTerm = readonly [coefficient: number, latent: Tensor | Estimate];

/** A latent's tensor. */
export const tensorOf = (latent: Tensor | Estimate): Tensor => (latent instanceof Estimate ? latent.tensor : latent);

/** Whether a sum is its only term itself. */
export const isItself = (terms: readonly Term[]): boolean => terms.length === 1 && terms[0]![0] === 1;

/** Weighted sum of one term or more; a single tensor of coefficient 1 is returned itself. */
export function sumOf(terms: readonly LatentTerm[]): Tensor {
  const flat = flatTerms(terms);
  return isItself(flat) ? flat[0]![1] : sumOfFlat(flat);
}

/** Weighted sum of one or more terms, up to 8 in one pass; into `out`, which must not be one of them, if it is set. */
export function sumOfFlat(flat: readonly Term[], out?: Tensor): Tensor {
  if (flat.length <= MOST_TERMS) return weightedSum(flat, out);
  let sum = weightedSum(flat.slice(0, MOST_TERMS), out);
  for (let at = MOST_TERMS; at < flat.length; at += MOST_TERMS - 1) {
    sum = weightedSum([[1, sum], ...flat.slice(at, at + MOST_TERMS - 1)], sum);
  }
  return sum;
}

/** A sum repeated as one batch, and only its first items in the same memory. */
export interface RepeatedSum {
  readonly batch: Tensor;
  readonly first: Tensor;
}

/** Whether `repeatedSumOf` has something to do: there is a sum, of up to 8 terms, on the CPU. */
export function isRepeatable(terms: readonly Term[]): boolean {
  if (terms.length > MOST_TERMS || isItself(terms)) return false;
  for (const [, x] of terms) if (x.isAway) return false;
  return true;
}

/** The sum of terms that are repeatable, `times` times as one batch, in `out` if it is set. */
export function repeatedSumOf(terms: readonly Term[], times: number, out?: Tensor): RepeatedSum {
  const batch = repeatedSum(terms, times, out);
  return { batch, first: batch.part(0, terms[0]![1]) };
}

/** The terms, those of estimates in place of these. */
export function flatTerms(terms: readonly LatentTerm[]): readonly Term[] {
  const flat: Term[] = [];
  for (const term of terms) {
    const [coefficient, latent] = term;
    if (latent instanceof Tensor) flat.push(term as Term);
    else for (const [own, x] of latent.terms) flat.push([coefficient * own, x]);
  }
  return flat;
}
