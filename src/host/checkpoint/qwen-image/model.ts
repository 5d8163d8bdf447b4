import { LatentkitError } from "../../../base/errors.js";
import { repeated } from "../../../tensor/parts.js";
import { LATENT_FORMATS } from "../../../tensor/sampling/latent-format.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { modelUnits } from "../../sampling/latent-space.js";
import type { Conditioning, ModelPatch, SamplingRun } from "../../types.js";
import { type ControlInput, ControlPictures, controlOf } from "../diffusion/control-pictures.js";
import type { DiffusionNetwork, NamedTensors, NetworkCall, NetworkRun } from "../diffusion/model.js";
import { Recent } from "../files/recent.js";
import {
  FLUX_PATCHES,
  FLUX_PLACES,
  fluxAxes,
  joinedTokens,
  patchesOf,
  patchesOfReferences,
  patchSides,
  pictureOf,
  placed,
  REFERENCES,
  type ReferencePlaces,
  type ReferenceRules,
  type References,
  referencesBy,
  type Sides,
  standAlike,
} from "../flux/patches.js";
import { type LoraTarget, ownPlaces, transformerNames } from "../lora/places.js";
import { type Position, rotationTables } from "../networks/sinusoids.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { Network } from "../weights/network.js";
import { buildQwenImage, type QwenImageConfig, qwenImageEmbeddings, qwenImageWork } from "./build.js";
import type { QwenImageControlConfig } from "./control.js";

/** Cells along a side of a patch. */
const SIDE = 2;
const CELLS = SIDE * SIDE;
const FORMAT = LATENT_FORMATS.Wan21;
const CONTROL_NODE = "QwenImageDiffsynthControlnet";
/** Sizes of texts, areas and references whose rotations stay computed in a run. */
const MOST_ROTATIONS = 8;

/** Where references stand; "index_timestep_zero" as "index", and their tokens have the time 0. */
type QwenPlaces = ReferencePlaces | typeof AT_ZERO;
const AT_ZERO = "index_timestep_zero";

/** A Qwen-Image transformer whose graph is built over the weights of a file. */
export class BuiltQwenImage implements DiffusionNetwork {
  readonly label: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim: number;
  readonly #rules: ReferenceRules<QwenPlaces>;

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<QwenImageConfig>,
    readonly controls: readonly ControlInput<QwenImageControlConfig>[] = [],
  ) {
    const { label, config } = part;
    this.label = label;
    this.inChannels = config.inputs / CELLS;
    this.outChannels = this.inChannels;
    this.contextDim = config.contextWidth;
    const usual = config.hasReferenceTime ? AT_ZERO : "index";
    this.#rules = { channels: FORMAT.channels, places: [usual, "index", AT_ZERO, "offset", "uxo"] };
  }

  get places(): readonly string[] {
    return this.#rules.places;
  }

  get target(): LoraTarget {
    const places: LoraTarget["places"] = (weights) =>
      [...ownPlaces(weights)].map(([module, at]) => [transformerNames(module), at]);
    return { weights: this.part.weights, places };
  }

  adapted(adapter: Adapter): BuiltQwenImage {
    return new BuiltQwenImage(this.runtime, this.part.adapted(adapter), this.controls);
  }

  patched(patch: ModelPatch): BuiltQwenImage | undefined {
    if (patch.node !== CONTROL_NODE) return undefined;
    const { label, part } = this;
    const of = { family: "qwen-image", label, width: part.config.width };
    return new BuiltQwenImage(this.runtime, part, [...this.controls, controlOf<QwenImageControlConfig>(patch, of)]);
  }

  /** Entries share a call if their tokens stand at the same places. */
  canShare(entries: Conditioning): boolean {
    return standAlike(entries, (entry) => this.#referencesOf(entry));
  }

  labelInputs(entry: Conditioning[number]): NamedTensors {
    const references = patchesOfReferences(this.#referencesOf(entry), (latent) => modelUnits(latent, FORMAT));
    return references === undefined ? {} : { [REFERENCES]: references };
  }

  forRun(run: SamplingRun): NetworkRun {
    const rotations = new Recent<NamedTensors>(MOST_ROTATIONS);
    const controls = new ControlPictures(this.controls, run, (latent) => patchesOf(latent, FLUX_PATCHES));
    return { predict: async (call) => this.#predict(call, rotations, await controls.of(call.x), run.steps) };
  }

  #referencesOf(entry: Conditioning[number]): References<QwenPlaces> {
    return referencesBy(this.#rules, entry);
  }

  async #predict(
    { x, timestep, context, labels, entry, signal }: NetworkCall,
    rotations: Recent<NamedTensors>,
    controls: NamedTensors,
    calls: number,
  ): Promise<Tensor> {
    if (entry[1].control !== undefined && entry[1].control !== null) {
      const message = `${this.label} takes control nets as model patches (ModelPatchLoader), not as a ControlNet.`;
      throw new LatentkitError("host.missing", message);
    }
    const [items, , height, width] = x.shape as [number, number, number, number];
    const { config } = this.part;
    const references = labels[REFERENCES];
    const { latents, places } = this.#referencesOf(entry);
    const patches = patchesOf(x, FLUX_PATCHES);
    const sides = latents.map(({ shape }): Sides => [shape[2]!, shape[3]!]);
    const sizes = [context.shape[1]!, [height, width], sides, places] as const;
    // the same tensors for the same sizes, so that they are sent once
    const tables = rotations.getOr(JSON.stringify(sizes), () => {
      const { cos, sin } = rotationTables(qwenImagePositions(...sizes), fluxAxes(config.headSize), FLUX_PLACES.theta);
      return { joint_cos: cos, joint_sin: sin };
    });
    const time = repeated(qwenImageEmbeddings([timestep]), items);
    const hasReferenceTime = config.hasReferenceTime || places === AT_ZERO;
    const tokens = references === undefined ? patches : joinedTokens([patches, references]);
    const isAtZero = places === AT_ZERO && references !== undefined;
    // without references the last patch counts as one, at the time of all: the graph has no empty part
    const own = references === undefined ? patches.shape[1]! - 1 : patches.shape[1]!;
    const times = {
      reference_time: isAtZero ? repeated(qwenImageEmbeddings([0]), items) : time,
      count: { int64: [own], shape: [1] },
    };
    const feeds = { x: tokens, time, context, ...tables, ...controls, ...(hasReferenceTime ? times : {}) };
    const nets = this.controls.map(({ part }) => part);
    const build = (network: Network, config: QwenImageConfig, others: readonly Network[]) =>
      buildQwenImage(network, config, {
        hasReferenceTime,
        controls: others.map((other, index) => ({ network: other, config: nets[index]!.config })),
      });
    const variant = hasReferenceTime ? "Qwen-Image, with times of references" : "Qwen-Image";
    const session = this.part.session(variant, build, { beside: nets, work: qwenImageWork(config) });
    const options = { signal, keep: ["context", ...Object.keys(tables), ...Object.keys(controls)], calls };
    const { out } = await this.runtime.run(session, feeds, options);
    return pictureOf(out!, [height, width], FLUX_PATCHES);
  }
}

/**
 * Positions of a text's tokens, then of a picture's patches around its middle, then of those of its references; sides in
 * cells of latents.
 *
 * @internal
 */
export function qwenImagePositions(
  texts: number,
  picture: Sides,
  references: readonly Sides[] = [],
  places: QwenPlaces = "index",
): Position[] {
  const first = Math.max(...patchSides(picture, SIDE).map((side) => Math.floor(side / 2)));
  const positions: Position[] = Array.from({ length: texts }, (_, at) => [first + at, first + at, first + at]);
  const append = (sides: Sides, index: number, [down, right]: Sides): void => {
    const [rows, columns] = patchSides(sides, SIDE);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        positions.push([index, row - Math.floor(rows / 2) + down, column - Math.floor(columns / 2) + right]);
  };
  append(picture, 0, [0, 0]);
  const how = places === "offset" || places === "uxo" ? "offset" : "index";
  for (const { sides, index, offset } of placed(picture, references, how, SIDE))
    append(sides, index, patchSides(offset, SIDE));
  return positions;
}
