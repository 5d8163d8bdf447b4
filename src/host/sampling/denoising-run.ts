import { YieldTimer } from "../../base/yield-timer.js";
import { releaseMemory } from "../../tensor/device-values.js";
import { maskedBlend, type Term } from "../../tensor/ops.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { type Denoiser, Estimator } from "./conditioning/estimator.js";
import type { GuidanceMethod, GuidedEstimate } from "./guiders/cfg.js";
import { noised } from "./latent-space.js";
import type { StepNoise } from "./noise.js";
import type { Guided, SolverContext } from "./solver.js";
import { sumOf } from "./sum.js";

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

/** Tensors of a run that are followed at most: more than one step needs. */
const MOST_MADE = 32;

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
  /** Tensors that the run has made for the solver; none on a device, whose memory has a pool of its own. */
  private made: Tensor[] = [];
  /** Those that the solver reads no more, memory of the next ones. */
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

  // a property: guiders get it alone
  readonly sum = (terms: readonly Term[]): Tensor => {
    const [first] = terms;
    const isItself = terms.length === 1 && first![0] === 1;
    return isItself ? first![1] : this.owned(sumOf(terms, this.spareTensor()));
  };

  keepOnly(kept: readonly Tensor[]): void {
    const { made, spare } = this;
    this.made = [];
    for (const tensor of made) (kept.some((one) => sharesMemory(one, tensor)) ? this.made : spare).push(tensor);
  }

  /** Returns memory that is not in use to the pool, at the end of a run. */
  end(): void {
    this.estimator.end();
    for (let spare = this.spareTensor(); spare !== undefined; spare = this.spareTensor()) releaseMemory(spare.memory);
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
    return { denoised: maskedBlend(denoised, inpaint.latent, mask), uncond };
  }

  private async guide(x: Tensor, sigma: number, skipped: readonly number[]): Promise<GuidedEstimate> {
    // a model that computes at once would keep timers, progress and the signal waiting
    if (this.timer.isDue) await this.timer.yield();
    const { model, method } = this.source;
    const estimates = await this.estimator.estimate(x, sigma, skipped);
    const predict = (cond: Conditioning, other = x): Promise<Tensor> => this.estimateOf(cond, other, sigma);
    return method.guide({ x, sigma, estimates, guidance: model.guidance, predict, sum: this.sum });
  }

  private owned(tensor: Tensor): Tensor {
    if (tensor.isAway) return tensor;
    // of a solver that gives nothing back
    if (this.made.length === MOST_MADE) this.made.shift();
    this.made.push(tensor);
    return tensor;
  }

  private spareTensor(): Tensor | undefined {
    const { denoised } = this;
    const at = this.spare.findIndex((one) => denoised === undefined || !sharesMemory(one, denoised));
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

const sharesMemory = (a: Tensor, b: Tensor): boolean => a === b || a.memory === b.memory;
