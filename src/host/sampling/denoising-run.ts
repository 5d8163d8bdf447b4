import { YieldTimer } from "../../base/yield-timer.js";
import { maskedBlend } from "../../tensor/ops.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning } from "../types.js";
import { type Denoiser, Estimator } from "./conditioning/estimator.js";
import type { GuidanceMethod, GuidedEstimate } from "./guiders/cfg.js";
import { noised } from "./latent-space.js";
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

/** Everything that a run denoises with. */
export interface RunSource {
  readonly model: Denoiser;
  readonly method: GuidanceMethod;
  readonly sigmas: Float32Array;
  readonly shape: readonly number[];
  /** Where the latent stays as it is, and the noise that hides it there. */
  readonly inpaint?: { readonly mask: Tensor; readonly latent: Tensor; readonly noise: Tensor | undefined };
  readonly noise: SolverContext["noise"];
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
    return this.source.noise(sigma, next);
  }

  async denoise(x: Tensor, sigma: number): Promise<Tensor> {
    return (await this.evaluate(x, sigma, this.source.method.unused)).denoised;
  }

  async denoiseBoth(x: Tensor, sigma: number): Promise<Guided> {
    const { denoised, uncond = Tensor.zeros(x.shape) } = await this.evaluate(x, sigma, []);
    return { denoised, uncond };
  }

  report(step: number, denoised: Tensor): void {
    const { sigmas, onStep } = this.source;
    this.denoised = denoised;
    onStep?.({ step, total: sigmas.length - 1, sigma: sigmas[step] ?? 0, denoised });
  }

  private async evaluate(x: Tensor, sigma: number, skipped: readonly number[]): Promise<GuidedEstimate> {
    // a model that computes at once would keep timers, progress and the signal waiting
    if (this.timer.isDue) await this.timer.yield();
    const { inpaint, model, sigmas } = this.source;
    if (inpaint === undefined) return this.guide(x, sigma, skipped);
    const mask = model.guidance?.mask?.(inpaint.mask, sigma, sigmas) ?? inpaint.mask;
    const original = noised(model.sampling, sigma, inpaint.noise, inpaint.latent);
    const { denoised, uncond } = await this.guide(maskedBlend(x, original, mask), sigma, skipped);
    return { denoised: maskedBlend(denoised, inpaint.latent, mask), uncond };
  }

  private async guide(x: Tensor, sigma: number, skipped: readonly number[]): Promise<GuidedEstimate> {
    const { model, method } = this.source;
    const estimates = await this.estimator.estimate(x, sigma, skipped);
    const predict = (cond: Conditioning, other = x): Promise<Tensor> => this.estimateOf(cond, other, sigma);
    return method.guide({ x, sigma, estimates, guidance: model.guidance, predict });
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
