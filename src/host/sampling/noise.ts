import { LatentkitError } from "../../base/errors.js";
import { releaseMemory } from "../../tensor/device-values.js";
import { createGenerator, type Generator, randn } from "../../tensor/random.js";
import type { Tensor } from "../../tensor/tensor.js";
import { brownianNoise } from "./brownian.js";
import type { NoiseKind } from "./solver.js";

/** Noise that sampling starts from; its seed starts the solver's own noise too, also where it is not enabled. */
export interface InitialNoise {
  readonly seed: bigint;
  readonly enabled: boolean;
}

/** Shape of a run's noise, and the draws of a batch that its latents are, where they are not all. */
export interface NoiseLayout {
  readonly shape: readonly number[];
  readonly batchIndex?: readonly number[];
}

const MAX_SEED = 2n ** 64n - 1n;

/** Initial noise N(0, 1), on the stream of PyTorch's CPU generator; undefined where it is not enabled. */
export function initialNoise({ seed, enabled }: InitialNoise, { shape, batchIndex }: NoiseLayout): Tensor | undefined {
  return enabled ? randn(shape, { seed, batchIndex }) : undefined;
}

// decision 205
/** Noise of ddim around an inpainting mask: seed + 1. `after` draws what follows it. */
export function reseededNoise(seed: bigint, shape: readonly number[]): { readonly noise: Tensor; after: Generator } {
  if (seed >= MAX_SEED) {
    const message = `seed: expected at most ${MAX_SEED - 1n} with ddim, which draws noise of seed + 1, received ${seed}.`;
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
  /** The global generator where it was seeded anew after the initial noise. */
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

// decision 196
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
