import { describe, LatentkitError } from "../../../base/errors.js";
import { cycled, joined, repeated } from "../../../tensor/parts.js";
import { LATENT_FORMATS, type LatentFormat } from "../../../tensor/sampling/latent-format.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../../types.js";
import { optionalTensor, planesOf, pooledText, resizedTo } from "../diffusion/conditioning.js";
import type { DiffusionNetwork, NamedTensors, NetworkCall, NetworkRun } from "../diffusion/model.js";
import { Recent } from "../files/recent.js";
import type { LoraTarget } from "../lora/places.js";
import { takingInputs } from "../lora/recognise.js";
import { rotationTables, sinusoids, timeEmbeddings } from "../networks/sinusoids.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import { buildFlux, fluxWork } from "./build.js";
import { changesIn, FLUX_KINDS, type FluxConfig, type FluxKindName } from "./config.js";
import { fluxPlaces } from "./lora.js";
import {
  FLUX_PATCHES,
  fluxAxes,
  fluxPositions,
  joinedTokens,
  patchesOf,
  patchesOfReferences,
  pictureOf,
  REFERENCES,
  type ReferencePlaces,
  type References,
  referencesBy,
  standAlike,
} from "./patches.js";

/** Sizes of texts, areas and references whose rotations stay computed in a run. */
const MOST_ROTATIONS = 8;

/** A transformer of Flux's blocks whose graph is built over the weights of a file. */
export class BuiltFlux implements DiffusionNetwork {
  readonly label: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim: number;

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<FluxConfig>,
  ) {
    const { label, config } = part;
    this.label = label;
    const { patchSide } = FLUX_KINDS[config.kind].places;
    const cells = patchSide * patchSide;
    this.inChannels = config.inputs / cells;
    this.outChannels = config.outputs / cells;
    this.contextDim = config.contextWidth;
  }

  get pooledWidth(): number | undefined {
    return this.part.config.pooledWidth || undefined;
  }

  get places(): readonly string[] {
    return FLUX_KINDS[this.part.config.kind].places.references;
  }

  get target(): LoraTarget {
    return { weights: this.part.weights, places: fluxPlaces, inputs: "img_in.weight" };
  }

  adapted(adapter: Adapter): BuiltFlux {
    return new BuiltFlux(this.runtime, this.part.adapted(adapter));
  }

  /** The network as a Control LoRA changes it. Throws model.unsupported for one of a model that takes other patches. */
  taking(inputs: number): BuiltFlux {
    const { config, weights } = this.part;
    if (inputs === config.inputs) return this;
    const expected = 2 * config.outputs;
    if (inputs !== expected || config.inputs > expected) {
      const what =
        inputs === expected
          ? `a model that takes ${config.outputs} or ${expected} numbers of a patch for a Control LoRA, received one that takes ${config.inputs}`
          : `a Control LoRA for ${expected} numbers of a patch, received one for ${inputs}`;
      const message = `${this.label}: expected ${what}.`;
      throw new LatentkitError("model.unsupported", message);
    }
    return new BuiltFlux(this.runtime, this.part.with({ ...config, inputs }, takingInputs(weights, inputs)));
  }

  /** Entries share a call if their tokens stand at the same places. */
  canShare(entries: Conditioning): boolean {
    return standAlike(entries, (entry) => referencesOf(entry, this.part.config.kind));
  }

  labelInputs(entry: Conditioning[number]): NamedTensors {
    const { kind, pooledWidth, hasGuidance } = this.part.config;
    const references = referencePatches(referencesOf(entry, kind), kind);
    return {
      ...(pooledWidth === 0 ? {} : { y: pooledText(entry, pooledWidth) }),
      ...(hasGuidance ? guidanceOf(entry) : {}),
      ...(references === undefined ? {} : { [REFERENCES]: references }),
    };
  }

  extraChannels(entry: Conditioning[number], run: SamplingRun): Tensor {
    return pictureChannels(entry, run, this.inChannels > 2 * this.outChannels);
  }

  forRun(run: SamplingRun): NetworkRun {
    const rotations = new Recent<NamedTensors>(MOST_ROTATIONS);
    return { predict: (call) => this.#predict(call, rotations, run.steps) };
  }

  async #predict(
    { x, timestep, context, labels, entry, signal }: NetworkCall,
    rotations: Recent<NamedTensors>,
    calls: number,
  ): Promise<Tensor> {
    if (entry[1].control !== undefined && entry[1].control !== null)
      throw new LatentkitError("host.missing", `${this.label} does not support ControlNets.`);
    const [items, , height, width] = x.shape as [number, number, number, number];
    const { [REFERENCES]: references, ...own } = labels;
    const { config } = this.part;
    const { kind, headSize } = config;
    const { places: tokens } = FLUX_KINDS[kind];
    const patches = patchesOf(x, FLUX_PATCHES, tokens.patchSide);
    const sizes = sizesOf(context.shape[1]!, [height, width], referencesOf(entry, kind));
    // the same tensors for the same sizes, so that they are sent once
    const tables = rotations.getOr(JSON.stringify(sizes), () => {
      const { cos, sin } = rotationTables(fluxPositions(...sizes, tokens), fluxAxes(headSize, tokens), tokens.theta);
      return { joint_cos: cos, joint_sin: sin };
    });
    const embedded =
      config.approximator === undefined ? fluxEmbeddings([timestep]) : changeEmbeddings([timestep], config);
    const feeds = {
      x: references === undefined ? patches : joinedTokens([patches, references]),
      time: repeated(embedded, items),
      context,
      ...own,
      ...tables,
    };
    const work = fluxWork(config);
    const session = this.part.session("Flux", (network) => buildFlux(network, config), { work });
    const options = { signal, keep: ["context", ...Object.keys(own), ...Object.keys(tables)], calls };
    const { out } = await this.runtime.run(session, feeds, options);
    return pictureOf(out!, [height, width], FLUX_PATCHES, tokens.patchSide);
  }
}

/** Sizes of a call's tokens, and places of its references. */
const sizesOf = (texts: number, sides: readonly [number, number], { latents, places }: References<ReferencePlaces>) =>
  [texts, sides, latents.map(({ shape }) => [shape[2]!, shape[3]!] as const), places] as const;

/** Guidance of an entry without its own. */
const GUIDANCE = 3.5;
/** Pixels along a side of a latent's cell. */
const CELL = 8;

/** The references of an entry. Fails as referencesBy. @internal */
export function referencesOf(entry: Conditioning[number], kind: FluxKindName = "flux"): References<ReferencePlaces> {
  const { latentFormat, places } = FLUX_KINDS[kind];
  return referencesBy({ channels: LATENT_FORMATS[latentFormat].channels, places: places.references }, entry);
}

/** Patches of all references [1 or n, L, numbers] in the model's units; undefined for none. @internal */
export function referencePatches(references: References, kind: FluxKindName = "flux"): Tensor | undefined {
  const { latentFormat, places } = FLUX_KINDS[kind];
  const units = (latent: Tensor): Tensor => modelUnits(latent, LATENT_FORMATS[latentFormat]);
  return patchesOfReferences(references, units, places.patchSide);
}

/**
 * Guidance of an entry, embedded [1, 256], and 1 or 0 for whether it has any. Fails with value.invalid for anything but a number.
 *
 * @internal
 */
export function guidanceOf([, { guidance = GUIDANCE }]: Conditioning[number]): { guidance: Tensor; guided: Tensor } {
  if (guidance !== null && !(typeof guidance === "number" && Number.isFinite(guidance)))
    throw new LatentkitError("value.invalid", `conditioning: expected a guidance, received ${describe(guidance)}.`);
  return { guidance: fluxEmbeddings([guidance ?? 0]), guided: Tensor.full([1], guidance === null ? 0 : 1) };
}

/**
 * Channels of a picture beside the latent in the model's units, and with `hasMask` 64 of a mask: its pixels in each cell,
 * row by row. They come from the entry's `concat_latent_image` and `concat_mask`. Without a picture there is black, without
 * a mask, the run's too, everything is repainted.
 *
 * @internal
 */
export function pictureChannels(entry: Conditioning[number], run: SamplingRun, hasMask: boolean): Tensor {
  const [batch, channels, rows, columns] = run.latent.shape as [number, number, number, number];
  const picture = optionalTensor(entry, "concat_latent_image") ?? Tensor.zeros([1, channels, rows, columns]);
  if (picture.shape.length !== 4 || picture.shape[1] !== channels) {
    const expected = `concat_latent_image with ${channels} channels`;
    throw new LatentkitError("tensor.bad-shape", `conditioning: expected ${expected}, received ${describe(picture)}.`);
  }
  const scaled = cycled(modelUnits(resizedTo(picture, rows, columns), LATENT_FORMATS.Flux), batch);
  if (!hasMask) return scaled;
  const mask = optionalTensor(entry, "concat_mask") ?? run.mask;
  if (mask === undefined) return joined([scaled, Tensor.full([batch, CELL * CELL, rows, columns], 1)], 1);
  const pixels = cycled(resizedTo(planesOf(mask), CELL * rows, CELL * columns), batch);
  return joined([scaled, cellsOf(pixels, rows, columns)], 1);
}

/** Pixels [B, 1, 8 · rows, 8 · columns] as channels of their cells [B, 64, rows, columns]. */
function cellsOf(pixels: Tensor, rows: number, columns: number): Tensor {
  const [items] = pixels.shape as [number];
  const out = Tensor.unfilled([items, CELL * CELL, rows, columns]);
  const width = CELL * columns;
  let at = 0;
  for (let item = 0; item < items; item++)
    for (let y = 0; y < CELL; y++)
      for (let x = 0; x < CELL; x++)
        for (let row = 0; row < rows; row++)
          for (let column = 0; column < columns; column++)
            out.data[at++] = pixels.data[((item * rows + row) * CELL + y) * width + column * CELL + x]!;
  return out;
}

/** A latent of the VAE in the model's units: zeros, which are a colour too, as all others. */
function modelUnits(latent: Tensor, { scaleFactor, shiftFactor }: LatentFormat): Tensor {
  const out = Tensor.unfilled(latent.shape);
  for (let i = 0; i < out.size; i++) out.data[i] = Math.fround(latent.data[i]! - shiftFactor) * scaleFactor;
  return out;
}

/** Factor of numbers before they are embedded. */
const FACTOR = 1000;

// one rounding an operation, as in the source
const factored = (value: number): number => Math.fround(Math.fround(value) * FACTOR);

/** Embeddings [n, 256] of noise levels, or of guidances. @internal */
export const fluxEmbeddings = (values: readonly number[]): Tensor => timeEmbeddings(values.map(factored));

/**
 * Inputs [n, changes, inputs] of Chroma's approximator for noise levels: for each change the embedded level, a guidance of 0
 * and the number of the change. @internal
 */
export function changeEmbeddings(
  levels: readonly number[],
  config: Pick<FluxConfig, "doubleBlocks" | "singleBlocks" | "approximator">,
): Tensor {
  const { inputs } = config.approximator!;
  const count = changesIn(config);
  const numbers = Array.from({ length: count }, (_, index) => sinusoids(factored(index), inputs / 2));
  const guidance = sinusoids(0, inputs / 4);
  const rows = levels.flatMap((level) => {
    const time = sinusoids(factored(level), inputs / 4);
    return numbers.flatMap((number) => [...time, ...guidance, ...number]);
  });
  return Tensor.from(rows, [levels.length, count, inputs]);
}
