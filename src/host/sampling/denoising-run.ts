import { YieldTimer } from "../../base/yield-timer.js";
import { releaseMemory } from "../../tensor/device-values.js";
import { maskedBlend, type Term, weightedSum } from "../../tensor/ops.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { type Denoiser, Estimator } from "./conditioning/estimator.js";
import type { GuidanceMethod, GuidedEstimate } from "./guiders/cfg.js";
import { noised } from "./latent-space.js";
import type { StepNoise } from "./noise.js";
import type { Guided, SolverContext } from "./solver.js";

/** One step of a sampler that is done. */
export interface SampledStep {
  /** From 0. */
  readonly step: number;
  readonly total: number;
  /** Noise level at which the step began. */
  readonly sigma: number;
  /** Estimate of the clean latent, in the model's units. */
  readonly denoised: Tensor;
}

const NONE: readonly number[] = [];

/** Everything that a run denoises with. */
export interface RunSource {
  readonly model: Denoiser;
  readonly method: GuidanceMethod;
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
  denoised: Tensor | undefined;
  private readonly estimator: Estimator;
  private readonly others = new WeakMap<Conditioning, Estimator>();
  private readonly timer = new YieldTimer();
  /** Estimates and noise that the run has made and the solver still reads; none on a device, which has a pool of its own. */
  private readonly made = new WeakSet<Tensor>();
  /** Those that it reads no more, memory of the next ones. */
  private readonly spare: Tensor[] = [];

  constructor(private readonly source: RunSource) {
    const { model, method, shape, signal } = source;
    this.estimator = new Estimator(model, method.sides, shape, method.areaOrder, signal);
  }

  get sampling(): ModelSampling {
    return this.source.model.sampling;
  }

  get sigmas(): Float32Array {
    return this.source.sigmas;
  }

  noise(sigma: number, next: number): Tensor {
    return this.owned(this.source.noise(sigma, next, this.spareTensor()));
  }

  async denoise(x: Tensor, sigma: number): Promise<Tensor> {
    return (await this.evaluate(x, sigma, this.source.method.unused)).denoised;
  }

  async denoiseBoth(x: Tensor, sigma: number): Promise<Guided> {
    const { denoised, uncond = Tensor.zeros(x.shape) } = await this.evaluate(x, sigma, NONE);
    return { denoised, uncond };
  }

  release(tensor: Tensor): void {
    if (this.made.delete(tensor)) this.spare.push(tensor);
  }

  /** Returns the memory of released tensors to the pool, at the end of a run. */
  end(): void {
    for (const tensor of this.spare.splice(0)) if (tensor !== this.denoised) releaseMemory(tensor.memory);
  }

  report(step: number, denoised: Tensor): void {
    const { sigmas, onStep } = this.source;
    this.denoised = denoised;
    onStep?.({ step, total: sigmas.length - 1, sigma: sigmas[step] ?? 0, denoised });
  }

  private evaluate(x: Tensor, sigma: number, skipped: readonly number[]): Promise<GuidedEstimate> {
    const { inpaint } = this.source;
    return inpaint === undefined ? this.guide(x, sigma, skipped) : this.inpaint(x, sigma, skipped, inpaint);
  }

  private async inpaint(
    x: Tensor,
    sigma: number,
    skipped: readonly number[],
    inpaint: NonNullable<RunSource["inpaint"]>,
  ): Promise<GuidedEstimate> {
    const { model, sigmas } = this.source;
    const mask = model.guidance?.mask?.(inpaint.mask, sigma, sigmas) ?? inpaint.mask;
    const original = noised(model.sampling, sigma, inpaint.noise, inpaint.latent);
    const { denoised, uncond } = await this.guide(maskedBlend(x, original, mask), sigma, skipped);
    const blended = maskedBlend(denoised, inpaint.latent, mask);
    this.release(denoised);
    return { denoised: blended, uncond };
  }

  private async guide(x: Tensor, sigma: number, skipped: readonly number[]): Promise<GuidedEstimate> {
    // a model that computes at once would keep timers, progress and the signal waiting
    if (this.timer.isDue) await this.timer.yield();
    const { model, method } = this.source;
    const estimates = await this.estimator.estimate(x, sigma, skipped);
    const predict = (cond: Conditioning, other = x): Promise<Tensor> => this.estimateOf(cond, other, sigma);
    const { guidance } = model;
    const { denoised, uncond } = await method.guide({ x, sigma, estimates, guidance, predict, sum: this.sum });
    // the solver writes over x
    return { denoised: apartFrom(x, denoised), uncond: uncond && apartFrom(x, uncond) };
  }

  private readonly sum = (terms: readonly Term[]): Tensor => this.owned(weightedSum(terms, this.spareTensor()));

  private owned(tensor: Tensor): Tensor {
    if (!tensor.isAway) this.made.add(tensor);
    return tensor;
  }

  private spareTensor(): Tensor | undefined {
    const at = this.spare.findIndex((one) => one !== this.denoised);
    return at < 0 ? undefined : this.spare.splice(at, 1)[0];
  }

  /** The estimate of one conditioning alone. */
  private async estimateOf(cond: Conditioning, x: Tensor, sigma: number): Promise<Tensor> {
    const { model, shape, signal } = this.source;
    const isUsual = x.hasShape(shape);
    let estimator = isUsual ? this.others.get(cond) : undefined;
    if (estimator === undefined) {
      estimator = new Estimator(model, [cond], x.shape, [0], signal);
      if (isUsual) this.others.set(cond, estimator);
    }
    const [estimate] = await estimator.estimate(x, sigma);
    return estimate ?? Tensor.zeros(x.shape);
  }
}

/** An estimate that is not x itself: a copy where it is in the same memory. */
const apartFrom = (x: Tensor, estimate: Tensor): Tensor => (estimate.memory === x.memory ? estimate.clone() : estimate);
