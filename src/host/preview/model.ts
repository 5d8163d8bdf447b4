import { describe, LatentkitError } from "../../base/errors.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { isFlow } from "../../tensor/sampling/noise-level.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, Model } from "../types.js";
import type { Colour } from "./colours.js";
import { analyse, synthesise, type Waves, wavesOf } from "./cosines.js";
import { type Prior, posterior, priorOf } from "./mixture.js";
import { LAYOUTS, type Scene, sceneOf, sharesAt } from "./scene.js";

/** Number of sizes of latents whose waves stay computed. */
const CACHED_SIZES = 8;

// decision 206
/**
 * Makes a model without weights. Latents of a prompt are a mixture of Gaussians, one for each layout of its colours, with
 * the spectrum of natural pictures. The estimate of the clean latent, the mean of what x can have been, has a closed form. predict takes x [k * B, C, h, w] in the model's
 * units and a conditioning of k entries. `toLatent` gives the latent of a colour.
 */
export function previewModel(sampling: ModelSampling, toLatent: (colour: Colour) => readonly number[]): Model {
  const { channels } = sampling.latentFormat;
  const scenes = new WeakMap<Tensor, Scene>();
  const priors = new WeakMap<Scene, Map<string, Prior>>();
  const sizes = new Map<number, Waves>();

  const wavesFor = (cells: number): Waves => {
    const waves = sizes.get(cells) ?? wavesOf(cells);
    if (sizes.size >= CACHED_SIZES) sizes.clear();
    sizes.set(cells, waves);
    return waves;
  };
  const priorFor = (cond: Tensor, down: Waves, across: Waves): Prior => {
    const scene = scenes.get(cond) ?? sceneOf(cond);
    scenes.set(cond, scene);
    const cached = priors.get(scene) ?? new Map<string, Prior>();
    priors.set(scene, cached);
    const size = `${down.cells} ${across.cells}`;
    const prior =
      cached.get(size) ?? priorOf(layoutsOf(scene, toLatent, channels, down, across), scene.spread, down, across);
    if (cached.size >= CACHED_SIZES) cached.clear();
    cached.set(size, prior);
    return prior;
  };

  const predict = async (x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor> => {
    signal?.throwIfAborted();
    refuseMisfit(x, sigma, channels, cond, sampling.name);
    const [batch, , rows, columns] = fourSides("predict", x);
    const [down, across] = [wavesFor(rows), wavesFor(columns)];
    const out = Tensor.unfilled(x.shape);
    const keep = isFlow(sampling) ? 1 - sigma : 1;
    for (let item = 0; item < batch; item++) {
      const [tensor] = cond[Math.floor((item * cond.length) / batch)]!;
      const prior = priorFor(tensor, down, across);
      estimate({ x: x.data, out: out.data, item, channels, down, across }, prior, keep, sigma);
    }
    return out;
  };
  return Object.freeze({ sampling, predict });
}

interface Item {
  readonly x: Float32Array;
  readonly out: Float32Array;
  readonly item: number;
  readonly channels: number;
  readonly down: Waves;
  readonly across: Waves;
}

/** Writes the estimate of one item: its waves by the mixture, the rest by one gain. */
function estimate({ x, out, item, channels, down, across }: Item, prior: Prior, keep: number, sigma: number): void {
  const plane = down.cells * across.cells;
  const starts = Array.from({ length: channels }, (_, channel) => (item * channels + channel) * plane);
  const waves = starts.map((from) => analyse(x, from, down, across));
  const { means, rest } = posterior(waves, prior, keep, sigma);
  for (const [channel, from] of starts.entries()) {
    for (let i = from; i < from + plane; i++) out[i] = rest * x[i]!;
    const change = means[channel]!.map((mean, wave) => mean - rest * waves[channel]![wave]!);
    synthesise(change, out, from, down, across);
  }
}

/** Amplitudes of the waves of each layout, by channel. */
function layoutsOf(
  scene: Scene,
  toLatent: (colour: Colour) => readonly number[],
  channels: number,
  down: Waves,
  across: Waves,
): Float64Array[][] {
  const colours = [scene.subject, scene.above, scene.below].map(toLatent);
  return LAYOUTS.map((layout) =>
    Array.from({ length: channels }, (_, channel) => {
      const plane = new Float64Array(down.cells * across.cells);
      for (let i = 0; i < plane.length; i++) {
        const [column, row] = [i % across.cells, Math.floor(i / across.cells)];
        const shares = sharesAt(layout, (column + 0.5) / across.cells, (row + 0.5) / down.cells);
        plane[i] = shares.reduce((sum, share, k) => sum + share * colours[k]![channel]!, 0);
      }
      return analyse(plane, 0, down, across);
    }),
  );
}

function refuseMisfit(x: Tensor, sigma: number, channels: number, cond: Conditioning, name: string): void {
  const [batch, count, rows, columns] = fourSides("predict", x);
  if (count !== channels || rows === 0 || columns === 0) {
    const message = `predict: expected a latent [B, ${channels}, h, w] for ${name}, received ${describe(x)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  if (!Number.isFinite(sigma) || sigma < 0) {
    throw new LatentkitError("value.out-of-range", `predict: expected sigma from 0, received ${describe(sigma)}.`);
  }
  if (cond.length === 0 || batch % cond.length !== 0) {
    const message = `predict: expected a batch that ${cond.length} conditionings divide, received ${batch} latents.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
}
