import { YieldTimer } from "../../base/abort.js";
import { maskedBlend, repeatedSum, type Term } from "../../tensor/ops.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { elementCount, Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { type Entry, readEntries } from "./conditioning.js";
import { type Denoiser, Estimator } from "./estimator.js";
import type { GuidanceMethod, GuidedEstimate } from "./guiders.js";
import { noised } from "./latent-space.js";
import type { StepNoise } from "./noise.js";
import {
  Estimate,
  flatTerms,
  type Guided,
  isItself,
  isRepeatable,
  type LatentTerm,
  type RepeatedSum,
  repeatedSumOf,
  type SolverContext,
  sumOfFlat,
  tensorOf,
} from "./solver.js";
import { StepMemory } from "./step-memory.js";

/** One step of a sampler that is done. */
export class SampledStep {
  readonly #estimate: Tensor | Estimate;

  constructor(
    /** From 0. */
    readonly step: number,
    readonly total: number,
    /** Noise level at which the step began. */
    readonly sigma: number,
    estimate: Tensor | Estimate,
  ) {
    this.#estimate = estimate;
  }

  /** Estimate of the clean latent, in the model's units, computed when it is read; valid during the call. */
  get denoised(): Tensor {
    return tensorOf(this.#estimate);
  }
}

const NONE: readonly number[] = [];
const NO_TENSORS: readonly Tensor[] = [];

/** Everything that a run denoises with. */
export interface RunSource {
  readonly model: Denoiser;
  readonly method: GuidanceMethod;
  /** Entries of the method's sides. */
  readonly sides: readonly (readonly Entry[])[];
  readonly sigmas: Float32Array;
  readonly shape: readonly number[];
  /** Where the latent stays as it is, and the noise that hides it there. */
  readonly inpaint?: { readonly mask: Tensor; readonly latent: Tensor; readonly noise: Tensor | undefined };
  readonly noise: StepNoise["draw"];
  readonly signal?: AbortSignal;
  readonly onStep?: (step: SampledStep) => void;
}

/** The context of a solver: a model under guidance, within a mask. */
export class DenoisingRun implements SolverContext {
  /** The last reported estimate. */
  #reported: Tensor | Estimate | undefined;
  readonly #estimator: Estimator;
  readonly #others = new WeakMap<Conditioning, Estimator>();
  readonly #timer = new YieldTimer();
  readonly #memory = new StepMemory();
  readonly #size: number;
  /** The latent that the solver began with, in memory of the run. */
  #first: Tensor | undefined;
  readonly #source: RunSource;

  constructor(source: RunSource) {
    this.#source = source;
    const { model, method, sides, shape, sigmas, signal } = source;
    this.#size = elementCount(shape);
    this.#estimator = new Estimator(model, sides, shape, signal);
    // for the sum that the run begins with
    this.#estimator.callsAt(sigmas[0]!, method.unused);
  }

  get sampling(): ModelSampling {
    return this.#source.model.sampling;
  }

  get sigmas(): Float32Array {
    return this.#source.sigmas;
  }

  noise(sigma: number, next: number): Tensor {
    return this.written((out) => this.#source.noise(sigma, next, out));
  }

  estimate(x: Tensor, sigma: number): Promise<GuidedEstimate> {
    return this.#evaluate(x, sigma, this.#source.method.unused);
  }

  async denoise(x: Tensor, sigma: number): Promise<Tensor> {
    const { denoised } = await this.#evaluate(x, sigma, this.#source.method.unused);
    return this.combined(denoised.terms);
  }

  async denoiseBoth(x: Tensor, sigma: number): Promise<Guided> {
    const { denoised, uncond = Tensor.zeros(x.shape) } = await this.#evaluate(x, sigma, NONE);
    return { denoised: this.combined(denoised.terms), uncond };
  }

  /** The latent that the solver begins with, a sum too; it is the run's until the end. */
  start(terms: readonly LatentTerm[]): Tensor {
    const first = this.sum(terms);
    this.#first = this.#memory.forget(first) ? first : undefined;
    return first;
  }

  next(terms: readonly LatentTerm[], kept: readonly Tensor[] = NO_TENSORS): Tensor {
    const next = this.sum(terms, kept);
    this.#memory.keepOnly(kept.length === 0 ? [next] : [next, ...kept]);
    return next;
  }

  /** The sum in the input of the next call of the model, where most latents go. With `kept`, only its terms are still read. */
  sum(terms: readonly LatentTerm[], kept?: readonly Tensor[]): Tensor {
    const { repeats } = this.#estimator;
    if (repeats === 1 || this.#source.inpaint !== undefined) return this.combined(terms);
    const flat = flatTerms(terms);
    if (!isRepeatable(flat)) return this.combined(flat);
    const last = kept && this.#lastInput(flat, kept);
    if (last !== undefined) {
      repeatedSum(flat, repeats, last.batch);
      return last.first;
    }
    const sum = repeatedSumOf(flat, repeats, this.#memory.take(repeats * this.#size));
    this.#memory.follow(sum.batch);
    this.#estimator.input = sum;
    return sum.first;
  }

  /** The input of the last call, if a sum of the terms may be written over it: the caches have it at hand. */
  #lastInput(terms: readonly Term[], kept: readonly Tensor[]): RepeatedSum | undefined {
    const last = this.#estimator.input;
    if (last === undefined) return undefined;
    const { memory, size } = last.batch;
    if (size !== this.#estimator.repeats * this.#size || !this.#memory.mayChange(memory)) return undefined;
    for (const [, x] of terms) if (x !== last.first && x.memory === memory) return undefined;
    for (const one of kept) if (one.memory === memory) return undefined;
    return last;
  }

  written(write: (out: Tensor | undefined) => Tensor): Tensor {
    return this.#memory.follow(write(this.#memory.take(this.#size)));
  }

  keepOnly(kept: readonly Tensor[]): void {
    this.#memory.keepOnly(kept);
  }

  /** Returns the memory of the run to the pool once the result has been read, but that of a reported estimate to be kept. */
  end(keepsEstimate: boolean): void {
    this.#estimator.end();
    if (this.#first !== undefined) this.#memory.follow(this.#first);
    this.#memory.release(keepsEstimate);
    this.#first = undefined;
    if (!keepsEstimate) this.#reported = undefined;
  }

  report(step: number, denoised: Tensor | Estimate): void {
    const { sigmas, onStep } = this.#source;
    this.#reported = denoised;
    this.#memory.report(denoised);
    onStep?.(new SampledStep(step, sigmas.length - 1, sigmas[step] ?? 0, denoised));
  }

  /** The last reported estimate; undefined before the first. */
  get denoised(): Tensor | undefined {
    return this.#reported && tensorOf(this.#reported);
  }

  #evaluate(x: Tensor, sigma: number, skipped: readonly number[]): Promise<GuidedEstimate> {
    const { inpaint } = this.#source;
    return inpaint === undefined ? this.#guide(x, sigma, skipped) : this.#inpaint(x, sigma, skipped, inpaint);
  }

  async #inpaint(
    x: Tensor,
    sigma: number,
    skipped: readonly number[],
    inpaint: NonNullable<RunSource["inpaint"]>,
  ): Promise<GuidedEstimate> {
    const { model, sigmas } = this.#source;
    const mask = model.guidance?.mask?.(inpaint.mask, sigma, sigmas) ?? inpaint.mask;
    const original = noised(model.sampling, sigma, inpaint.noise, inpaint.latent);
    const { denoised, uncond } = await this.#guide(maskedBlend(x, original, mask), sigma, skipped);
    return { denoised: new Estimate([[1, maskedBlend(this.combined(denoised.terms), inpaint.latent, mask)]]), uncond };
  }

  async #guide(x: Tensor, sigma: number, skipped: readonly number[]): Promise<GuidedEstimate> {
    // a model that computes at once would keep timers, progress and the signal waiting
    if (this.#timer.isDue) await this.#timer.yield();
    const { model, method } = this.#source;
    const estimates = await this.#estimator.estimate(x, sigma, skipped);
    const predict = (cond: Conditioning, other = x): Promise<Tensor> => this.#estimateOf(cond, other, sigma);
    const guided = method.guide({ x, sigma, estimates, guidance: model.guidance, predict, sum: this.combined });
    return guided instanceof Promise ? await guided : guided;
  }

  // a property: guiders get it on its own
  readonly combined = (terms: readonly LatentTerm[]): Tensor => {
    const flat = flatTerms(terms);
    // a model's own tensor, which is only read, or one that is followed already
    return isItself(flat) ? flat[0]![1] : this.written((out) => sumOfFlat(flat, out));
  };

  /** The estimate of a single conditioning. */
  async #estimateOf(cond: Conditioning, x: Tensor, sigma: number): Promise<Tensor> {
    const { model, shape, signal } = this.#source;
    const isUsual = x.hasShape(shape);
    let estimator = isUsual ? this.#others.get(cond) : undefined;
    if (estimator === undefined) {
      const [, , rows, columns] = x.shape as [number, number, number, number];
      estimator = new Estimator(model, [readEntries(cond, model.sampling, [rows, columns])], x.shape, signal);
      if (isUsual) this.#others.set(cond, estimator);
    }
    const [estimate] = await estimator.estimate(x, sigma);
    return estimate ?? Tensor.zeros(x.shape);
  }
}
