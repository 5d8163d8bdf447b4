import { releaseMemory } from "../../tensor/deferred-values.js";
import { type ScheduleOptions, sigmas } from "../../tensor/sampling/sigmas.js";
import type { Latent, SamplingRun } from "../types.js";
import { readSides } from "./conditioning.js";
import { DenoisingRun, type SampledStep } from "./denoising-run.js";
import { type Denoiser, requireDenoiser } from "./estimator.js";
import { type Guider, guidanceOf } from "./guiders.js";
import { denoiseMask, intoModel, noisedTerms, outOfModel, withChannels } from "./latent-space.js";
import { type InitialNoise, initialNoise, reseededNoise, solverNoise } from "./noise.js";
import type { SamplerChoice } from "./solver.js";
import { chosenSolver } from "./solvers/index.js";

/** Everything that sampling follows from. */
export interface SampleOptions {
  readonly guider: Guider;
  readonly sampler: SamplerChoice;
  /** Falling noise levels; without any, the latent is returned as it is, with only one, noised but without a step. */
  readonly sigmas: Float32Array;
  readonly noise: InitialNoise;
  /** In the VAE's units; its noise_mask says where it changes. */
  readonly latent: Latent;
  readonly signal?: AbortSignal;
  readonly onStep?: (step: SampledStep) => void;
}

/** The latent with its new samples, and with the last estimate of the clean ones; one object if there was no step. */
export class Sampled {
  readonly #run: DenoisingRun | undefined;

  constructor(
    readonly latent: Latent,
    run?: DenoisingRun,
  ) {
    this.#run = run;
  }

  /** Computed when it is read: most graphs do not. */
  get denoised(): Latent {
    const { denoised, sampling } = this.#run ?? {};
    if (denoised === undefined) return this.latent;
    return { ...this.latent, samples: outOfModel(denoised, sampling!) };
  }
}

/**
 * Denoises a latent with a sampler along noise levels. Its other keys stay; the last estimate can be read if the run keeps
 * it. Fails with host.missing for a model that cannot denoise, the signal's reason, and value.* or tensor.* for inputs that
 * do not fit.
 */
export async function sample(options: SampleOptions, keepsEstimate = true): Promise<Sampled> {
  const { guider, latent, sampler, noise } = options;
  const { sampling } = guider.model;
  const chosen = chosenSolver(sampler);
  const samples = withChannels(latent.samples, sampling);
  if (options.sigmas.length === 0) return new Sampled({ ...latent, samples });
  const model = requireDenoiser(guider.model);
  const sigmas = options.sigmas.slice();
  const { shape } = samples;
  const { seed } = noise;
  const layout = { shape, batchIndex: noise.enabled ? (latent.batch_index ?? undefined) : undefined };
  const initial = initialNoise(noise, layout);
  const reseeded = sampler.sampler === "ddim" ? reseededNoise(seed, shape) : undefined;
  const input = intoModel(samples, sampling);
  const mask = denoiseMask(latent.noise_mask, shape);
  const stepNoise = solverNoise(chosen.solver.noise, {
    layout,
    seed,
    sigmas,
    sameSeed: chosen.sameSeed,
    reseeded: reseeded?.after,
  });
  const method = guidanceOf(guider);
  const [, , rows, columns] = shape as [number, number, number, number];
  const sides = readSides(method.sides, sampling, [rows, columns], method.areaOrder);
  const run = new DenoisingRun({
    model: inRun(model, {
      sampling,
      latent: input,
      mask,
      negative: sides[method.negative]?.map(({ conditioning }) => conditioning) ?? [],
      steps: sigmas.length - 1,
      seed,
    }),
    method,
    sides,
    sigmas,
    shape,
    inpaint: mask && { mask, latent: input, noise: reseeded === undefined ? initial : reseeded.noise },
    noise: stepNoise.draw,
    signal: options.signal,
    onStep: options.onStep,
  });
  const x = run.start(noisedTerms(sampling, sigmas[0]!, initial, input, true));
  if (mask === undefined)
    for (const noise of [initial, reseeded?.noise]) if (noise !== undefined) releaseMemory(noise.memory);
  const { solver } = chosen;
  const hasSteps = sigmas.length > 1;
  const result = hasSteps ? await solver.sample(x, run, chosen.options).finally(stepNoise.release) : x;
  const last = (hasSteps ? solver.lastSigma?.(sigmas) : undefined) ?? sigmas.at(-1)!;
  const done = { ...latent, samples: outOfModel(result, sampling, last) };
  run.end(keepsEstimate);
  return new Sampled(done, run);
}

/** The model with the predictions that it makes in a run. */
function inRun(model: Denoiser, run: SamplingRun): Denoiser {
  const own = model.forRun?.(run);
  if (own === undefined) return model;
  const { sampling, guidance } = model;
  return { sampling, guidance, predict: (...input) => own.predict(...input) };
}

/** Steps of a schedule that one node runs. */
export interface StepWindow {
  /** First step; from the last one on nothing is left to do. */
  readonly start: number;
  /** Step before which sampling ends. */
  readonly end: number;
  /** Leaves the noise of a schedule that ends early; else the last step removes all of it. */
  readonly leavesNoise: boolean;
}

/** Noise levels of a sampler node; none if it has nothing to do. */
export function scheduledSigmas(options: ScheduleOptions, window?: StepWindow): Float32Array {
  const all = sigmas(options);
  if (window === undefined) return all;
  const { start, end, leavesNoise } = window;
  const used = end < all.length - 1 ? all.slice(0, end + 1) : all;
  if (used !== all && !leavesNoise) used[used.length - 1] = 0;
  return start < used.length - 1 ? used.subarray(start) : new Float32Array(0);
}
