import { describe, LatentkitError } from "../../base/errors.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { isFlow } from "../../tensor/sampling/noise-level.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, Model } from "../types.js";
import { layoutsOf } from "./landscape.js";
import {
  addTo,
  amplitudesOf,
  type Basis,
  basisOf,
  type Component,
  componentOf,
  type Item,
  shiftOf,
  textureGain,
  weightsOf,
} from "./mixture.js";
import { type Contents, PIGMENTS, type Scene, sceneOf } from "./scene.js";
import type { Colour } from "./words.js";

/** Landscapes whose derived values stay computed. */
const MOST_CACHED = 8;

// decisions: The preview host is a known distribution
/**
 * Makes a model without weights. Latents of a prompt are a mixture of Gaussians, one for each layout of its landscape, whose
 * colours vary. The estimate of the clean latent, the mean of what x can have been, has a closed form. predict takes
 * x [k * B, C, h, w] in the model's units and a conditioning of k entries; all entries have the layouts of the first one
 * that is of a landscape, so that guidance changes colours and not places. `toLatent` gives the latent of a colour.
 */
export function previewModel(sampling: ModelSampling, toLatent: (colour: Colour) => readonly number[]): Model {
  const { channels } = sampling.latentFormat;
  const scenes = new WeakMap<Tensor, Scene>();
  const bases = new Map<string, Basis[]>();
  const components = new WeakMap<Scene, Map<readonly Basis[], Component[]>>();

  const sceneFor = (cond: Tensor): Scene => {
    const scene = scenes.get(cond) ?? sceneOf(cond);
    scenes.set(cond, scene);
    return scene;
  };
  const basesFor = (contents: Contents | undefined, rows: number, columns: number): Basis[] =>
    cached(bases, JSON.stringify([contents, rows, columns]), () => layoutsOf(contents, rows, columns).map(basisOf));
  const componentsFor = (scene: Scene, own: readonly Basis[]): Component[] => {
    const ofScene = components.get(scene) ?? new Map<readonly Basis[], Component[]>();
    components.set(scene, ofScene);
    return cached(ofScene, own, () => {
      const latents = PIGMENTS.map((name) => toLatent(scene.palette[name]));
      const colours = Array.from({ length: channels }, (_, channel) => latents.map((latent) => latent[channel]!));
      return own.map((basis) => componentOf(basis, colours, scene.spread));
    });
  };

  const predict = async (x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor> => {
    signal?.throwIfAborted();
    requireFit(x, sigma, channels, cond, sampling.name);
    const [batch, , rows, columns] = fourSides("predict", x);
    const plane = rows * columns;
    const keep = isFlow(sampling) ? 1 - sigma : 1;
    const entries = cond.map(([tensor]) => sceneFor(tensor));
    const lead = entries.find(({ contents }) => contents !== undefined) ?? entries[0]!;
    const own = basesFor(lead.contents, rows, columns);
    const out = Tensor.unfilled(x.shape);
    const perEntry = batch / cond.length;
    for (let item = 0; item < batch; item++) {
      const starts = Array.from({ length: channels }, (_, channel) => (item * channels + channel) * plane);
      const scene = entries[Math.floor(item / perEntry)]!;
      estimate(
        { values: x.data, starts },
        out.data,
        [lead, scene].map((one) => componentsFor(one, own)),
        keep,
        sigma,
      );
    }
    return out;
  };
  return Object.freeze({ sampling, predict });
}

/** Weights below it change no byte of a picture. */
const LEAST_WEIGHT = 1e-6;

/** Writes the estimate of one item, whose layouts are weighed as in the components of the lead. */
function estimate(
  item: Item,
  out: Float32Array,
  [lead = [], own = lead]: readonly (readonly Component[])[],
  keep: number,
  sigma: number,
): void {
  const amplitudes = own.map((component) => amplitudesOf(item, component));
  const weights = weightsOf(lead, amplitudes, keep, sigma);
  const gain = textureGain(keep, sigma);
  const cells = own[0]!.basis.planes[0]!.length;
  for (const [channel, start] of item.starts.entries()) {
    const sum = new Float64Array(cells);
    for (let i = 0; i < cells; i++) sum[i] = gain * item.values[start + i]!;
    for (const [k, component] of own.entries()) {
      if (weights[k]! < LEAST_WEIGHT) continue;
      const shift = shiftOf(component, channel, amplitudes[k]![channel]!, keep, sigma);
      for (const [i, plane] of component.basis.planes.entries()) addTo(sum, plane, weights[k]! * shift[i]!);
    }
    out.set(sum, start);
  }
}

/** The value of a key, made if it is absent; a full map is cleared first. */
function cached<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const value = map.get(key) ?? make();
  if (map.size >= MOST_CACHED && !map.has(key)) map.clear();
  map.set(key, value);
  return value;
}

function requireFit(x: Tensor, sigma: number, channels: number, cond: Conditioning, name: string): void {
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
