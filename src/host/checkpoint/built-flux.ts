import { LatentkitError } from "../../base/errors.js";
import { repeated } from "../../tensor/parts.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../types.js";
import { FLUX_PATCHES, guidanceOf, pictureChannels, pooledOf, referencePatches, referencesOf } from "./flux-inputs.js";
import type { DiffusionNetwork, NamedTensors, NetworkCall, NetworkRun } from "./model.js";
import type { Adapter, ModelPart } from "./model-part.js";
import { FLUX_THETA, fluxAxes, fluxPositions } from "./networks/flux/positions.js";
import { buildFlux, type FluxConfig, fluxEmbeddings, fluxWork } from "./networks/flux/transformer.js";
import { joinedTokens, patchesOf, pictureOf } from "./networks/patches.js";
import { rotationTables } from "./networks/rotations.js";
import type { Runtime } from "./runtime/runtime.js";
import { takingInputs } from "./weights/lora/control-lora.js";
import type { LoraTarget } from "./weights/lora/names.js";

/** Cells of a patch. */
const CELLS = 4;
/** Sizes of texts, areas and references whose rotations stay computed in a run. */
const MOST_ROTATIONS = 8;
/** Name of the label that holds the patches of references; the network has them after those of the latent. */
const REFERENCES = "references";

/** A Flux.1 transformer whose graph is built over the weights of a file. */
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
    this.inChannels = config.inputs / CELLS;
    this.outChannels = config.outputs / CELLS;
    this.contextDim = config.contextWidth;
  }

  get target(): LoraTarget {
    return { kind: "flux", weights: this.part.weights };
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
      const message = `${this.label}: expected a Control LoRA for ${expected} numbers of a patch, received one for ${inputs} beside a model that takes ${config.inputs}.`;
      throw new LatentkitError("model.unsupported", message);
    }
    return new BuiltFlux(this.runtime, this.part.with({ ...config, inputs }, takingInputs(weights, inputs)));
  }

  /** Entries share a call where their tokens stand at the same places. */
  canShare([first, ...others]: Conditioning): boolean {
    const placesOf = (entry: Conditioning[number]): string => {
      const { latents, places } = referencesOf(entry);
      return JSON.stringify([entry[0].shape[1], places, latents.map(({ shape }) => shape.slice(2))]);
    };
    const places = first === undefined ? "" : placesOf(first);
    return others.every((entry) => placesOf(entry) === places);
  }

  labelInputs(entry: Conditioning[number]): NamedTensors {
    const { pooledWidth, hasGuidance } = this.part.config;
    const references = referencePatches(referencesOf(entry));
    return {
      y: pooledOf(entry, pooledWidth),
      ...(hasGuidance ? guidanceOf(entry) : {}),
      ...(references === undefined ? {} : { [REFERENCES]: references }),
    };
  }

  extraChannels(entry: Conditioning[number], run: SamplingRun): Tensor {
    return pictureChannels(entry, run, this.inChannels > 2 * this.outChannels);
  }

  forRun(run: SamplingRun): NetworkRun {
    const rotations = new Rotations(fluxAxes(this.part.config.headSize));
    return { predict: (call) => this.#predict(call, rotations, run.steps) };
  }

  async #predict(
    { x, timestep, context, labels, entry, signal }: NetworkCall,
    rotations: Rotations,
    calls: number,
  ): Promise<Tensor> {
    if (entry[1].control !== undefined && entry[1].control !== null)
      throw new LatentkitError("host.missing", `${this.label} takes no ControlNet.`);
    const [items, , height, width] = x.shape as [number, number, number, number];
    const { [REFERENCES]: references, ...own } = labels;
    const patches = patchesOf(x, FLUX_PATCHES);
    const tables = rotations.of(context.shape[1]!, [height, width], entry);
    const feeds = {
      x: references === undefined ? patches : joinedTokens([patches, references]),
      time: repeated(fluxEmbeddings([timestep]), items),
      context,
      ...own,
      ...tables,
    };
    const work = fluxWork(this.part.config);
    const session = this.part.session("Flux", (network, config) => buildFlux(network, config), { work });
    const options = { signal, keep: ["context", ...Object.keys(own), ...Object.keys(tables)], calls };
    const { out } = await this.runtime.run(session, feeds, options);
    return pictureOf(out!, [height, width], FLUX_PATCHES);
  }
}

/** Rotations of a call's tokens, the same tensors for the same places. */
class Rotations {
  readonly #axes: readonly number[];
  readonly #known = new Map<string, NamedTensors>();

  constructor(axes: readonly number[]) {
    this.#axes = axes;
  }

  of(texts: number, sides: readonly [number, number], entry: Conditioning[number]): NamedTensors {
    const { latents, places } = referencesOf(entry);
    const references = latents.map(({ shape }) => [shape[2]!, shape[3]!] as const);
    const key = JSON.stringify([texts, sides, references, places]);
    let tables = this.#known.get(key);
    if (tables === undefined) {
      const { cos, sin } = rotationTables(fluxPositions(texts, sides, references, places), this.#axes, FLUX_THETA);
      tables = { joint_cos: cos, joint_sin: sin };
      if (this.#known.size === MOST_ROTATIONS) this.#known.delete(this.#known.keys().next().value!);
      this.#known.set(key, tables);
    }
    return tables;
  }
}
