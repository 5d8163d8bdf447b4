import { types } from "node:util";
import { describe, LatentkitError } from "../../base/errors.js";
import { loadNative } from "../../native/load.js";
import { releaseMemory } from "../../tensor/deferred-values.js";
import { deferUpload } from "../../tensor/device/compute.js";
import { createGenerator, type Generator, randn, scaledRandn } from "../../tensor/random.js";
import { roundedTime } from "../../tensor/rounding.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { seedSequence } from "../../tensor/seed-sequence.js";
import { outputOf } from "../../tensor/shape.js";
import { elementCount, Tensor } from "../../tensor/tensor.js";
import type { Latent } from "../types.js";
import { CutRows, collectParts, rangeEnds, rootOf, type TimeParts } from "./brownian-tree.js";
import { intoModel, noised, outOfModel } from "./latent-space.js";
import type { NoiseKind } from "./solver.js";

/** Noise that sampling starts from; its seed starts the solver's own noise too, also if it is not enabled. */
export interface InitialNoise {
  readonly seed: bigint;
  readonly enabled: boolean;
}

/** Shape of a run's noise, and the draws of a batch that its latents are, if they are not all. */
export interface NoiseLayout {
  readonly shape: readonly number[];
  readonly batchIndex?: readonly number[];
}

const MAX_SEED = 2n ** 64n - 1n;

/** Initial noise N(0, 1), on the stream of PyTorch's CPU generator; undefined if it is not enabled. */
export function initialNoise({ seed, enabled }: InitialNoise, { shape, batchIndex }: NoiseLayout): Tensor | undefined {
  return enabled ? randn(shape, { seed, batchIndex }) : undefined;
}

// The last seed is refused: noise around a mask has seed + 1, which the reference's generator refuses too.
/** Noise of ddim around an inpainting mask: seed + 1. `after` draws what follows it. */
export function reseededNoise(seed: bigint, shape: readonly number[]): { readonly noise: Tensor; after: Generator } {
  if (seed >= MAX_SEED) {
    const message = `seed: with ddim expected at most ${MAX_SEED - 1n}, because ddim also uses seed + 1; received ${seed}.`;
    throw new LatentkitError("value.out-of-range", message);
  }
  const after = createGenerator({ seed: seed + 1n });
  return { noise: after.randn(shape), after };
}

/** Everything that a solver's own noise follows from. */
export interface SolverNoise {
  readonly layout: NoiseLayout;
  readonly seed: bigint;
  /** Whether the stream of ancestral noise has the seed itself, as older versions of ComfyUI, in place of seed + 1. */
  readonly sameSeed: boolean;
  readonly sigmas: Float32Array;
  /** The global generator if it was reseeded after the initial noise. */
  readonly reseeded?: Generator;
}

/** Noise of a solver: `draw` is N(0, 1) for the way between two noise levels. */
export interface StepNoise {
  /** Returns a tensor that the caller may write over; `out` is memory for it. */
  draw(sigma: number, next: number, out?: Tensor): Tensor;
  /** Returns memory to the pool, at the end of a run. */
  release(): void;
}

/** The noise of a solver, begun at its first use. */
export function solverNoise(kind: NoiseKind, from: SolverNoise): StepNoise {
  let begun: StepNoise | undefined;
  return {
    draw(sigma, next, out) {
      begun ??= kind === "brownian" ? brownianPath(from) : generatorNoise(kind, from);
      return begun.draw(sigma, next, out);
    },
    release: () => begun?.release(),
  };
}

function brownianPath({ seed, sigmas, layout }: SolverNoise): StepNoise {
  const draw = brownianNoise(seed, sigmas, layout.shape);
  return { draw, release: draw.release };
}

function generatorNoise(kind: NoiseKind, from: SolverNoise): StepNoise {
  const generator = kind === "global" ? (from.reseeded ?? afterInitial(from)) : streamOf(from);
  return { draw: (_sigma, _next, out) => generator.randn(from.layout.shape, out), release: () => {} };
}

// decisions: Ancestral noise starts from seed + 1
const streamOf = ({ seed, sameSeed }: SolverNoise): Generator =>
  createGenerator({ seed: sameSeed ? seed : (seed + 1n) & MAX_SEED });

/** The generator of the initial noise behind its draws, whether they are used or not. */
function afterInitial({ seed, layout: { shape, batchIndex } }: SolverNoise): Generator {
  const generator = createGenerator({ seed });
  const pass = (size: readonly number[]): void => releaseMemory(generator.randn(size).memory);
  if (batchIndex === undefined) pass(shape);
  const last = batchIndex?.reduce((a, b) => Math.max(a, b), -1) ?? -1;
  for (let index = 0; index <= last; index++) pass([1, ...shape.slice(1)]);
  return generator;
}

/**
 * A latent with noise of the level |first - last| of these sigmas, or of the only one; without sigmas the latent itself.
 * Values that are not finite become 0.
 */
export function addedNoise(sampling: ModelSampling, noise: InitialNoise, sigmas: Float32Array, latent: Latent): Latent {
  const [first] = sigmas;
  if (first === undefined) return latent;
  const sigma = sigmas.length === 1 ? first : Math.abs(first - sigmas.at(-1)!);
  const { samples } = latent;
  const batchIndex = latent.batch_index ?? undefined;
  const initial = initialNoise(noise, { shape: samples.shape, batchIndex });
  const noisy = outOfModel(noised(sampling, sigma, initial, intoModel(samples, sampling)), sampling);
  const { data } = noisy;
  for (let i = 0; i < data.length; i++) if (!Number.isFinite(data[i])) data[i] = 0;
  return { ...latent, samples: noisy };
}

/** Noise levels that a path spans: the positive ones of a schedule, or its ends, which are above 0. */
export type BrownianSpan = Float32Array | { readonly min: number; readonly max: number };

/** Draws N(0, 1) for the way from one noise level to the next. */
export interface BrownianNoise {
  /** Returns a tensor that the caller may write over, `out` if it is set. */
  (sigma: number, next: number, out?: Tensor): Tensor;
  /** Returns the memory of the path to the pool, at the end of a run; a later request draws again what it needs. */
  release(): void;
}

/** Rows of two ways from the root to a millionth, of paths that are not huge. */
const expectedRows = (length: number): number => 2 * (32 - Math.clz32(Math.ceil(Math.min(length, 1000) * 1e6) + 1));

/**
 * Noise of the SDE samplers: N(0, 1) of a shape for the way between two noise levels, increments of one Brownian path per
 * run, bit for bit torchsde's BrownianTree as ComfyUI seeds it. Values do not depend on earlier calls; levels
 * beyond the span count as its ends, and a way of less than a millionth has no noise. Holds about 45 tensors of the
 * shape until it is released. Fails with value.out-of-range and tensor.bad-shape. @internal
 */
export function brownianNoise(seed: bigint, sigmas: BrownianSpan, shape: readonly number[]): BrownianNoise {
  const size = elementCount(shape);
  const { min, max } = spanOf(sigmas);
  const [start, end] = [roundedTime(min), roundedTime(max)];
  const seeds = seedSequence(seed);
  const root = rootOf(start, end);
  let whole: Tensor | undefined;
  const rows = new CutRows(rangeEnds(size, loadNative().threads()), expectedRows(end - start));
  const noiseOf = (sigma: number, next: number, out?: Tensor): Tensor => {
    const [from, to] = [levelOf("sigma", sigma), levelOf("next sigma", next)];
    const timeOf = (level: number): number => Math.min(Math.max(roundedTime(level), start), end);
    const [low, high] = [timeOf(Math.min(from, to)), timeOf(Math.max(from, to))];
    if (low === high || size === 0) return Tensor.zeros(shape);
    whole ??= scaledRandn([size], Math.sqrt(max - min), { seed: seeds([]) });
    const parts: TimeParts = { terms: [], cuts: [] };
    collectParts(root, low, high, seeds, parts);
    // torch's square root of a float32
    const length = Math.fround(Math.sqrt(Math.fround(Math.abs(to - from))));
    const noise = outputOf("brownianNoise", shape, out);
    rows.compute(parts, (lefts, cuts, terms) => {
      loadNative().brownian(
        noise.data,
        whole!.data,
        lefts,
        rows.pitch,
        rows.ends,
        cuts,
        terms,
        from < to ? length : -length,
      );
    });
    return out === undefined ? deferUpload(noise) : noise;
  };
  const release = (): void => {
    rows.release();
    if (whole !== undefined) releaseMemory(whole.memory);
    whole = undefined;
  };
  return Object.assign(noiseOf, { release });
}

/** Ends of the path, doubles of float32; 0 to 0 if no level is above 0. */
function spanOf(sigmas: BrownianSpan): { min: number; max: number } {
  const levels = types.isFloat32Array(sigmas) ? sigmas : [sigmas.min, sigmas.max];
  let [min, max] = [Number.POSITIVE_INFINITY, 0];
  for (const sigma of levels) {
    const level = levelOf("sigma", sigma);
    if (level > 0) min = Math.min(min, level);
    max = Math.max(max, level);
  }
  return max === 0 ? { min: 0, max: 0 } : { min, max };
}

/** Largest noise level: products of a time and an increment stay far below the largest float32. */
const MOST = 1e20;

/** A noise level as float32. */
function levelOf(subject: string, sigma: number): number {
  const level = Math.fround(sigma);
  if (Math.abs(sigma) <= MOST) return level;
  const message = `Brownian noise, ${subject}: expected a number up to ${MOST}, received ${describe(sigma)}.`;
  throw new LatentkitError("value.out-of-range", message);
}
