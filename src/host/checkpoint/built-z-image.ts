import { LatentkitError } from "../../base/errors.js";
import { cropped, joined, narrowed } from "../../tensor/parts.js";
import { Tensor } from "../../tensor/tensor.js";
import type { SamplingRun } from "../types.js";
import type { DiffusionNetwork, NamedTensors, NetworkCall, NetworkRun } from "./model.js";
import type { Adapter, ModelPart } from "./model-part.js";
import { rotationTables, zImagePositions } from "./networks/rotations.js";
import { buildZImage, PADDING, type ZImageConfig } from "./networks/z-image.js";
import type { Runtime } from "./runtime/runtime.js";
import type { LoraTarget } from "./weights/lora/names.js";

/** Numbers of a head that turn by the token's place in time, its row and its column, in sixteenths. */
const AXES = [4, 6, 6] as const;
const THETA = 256;
/** Steps of the time that the network takes, from 0 (noise) to 1000. */
const TIME_STEPS = 1000;
/** Sizes of captions and areas whose rotations stay computed in a run: a regional prompt has a few. */
const MOST_ROTATIONS = 8;

/** A Z-Image transformer whose graph is built over the weights of a file. */
export class BuiltZImage implements DiffusionNetwork {
  readonly label: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim: number;
  readonly repeatsContexts = false;

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<ZImageConfig>,
  ) {
    const { label, config } = part;
    this.label = label;
    this.inChannels = config.channels;
    this.outChannels = config.channels;
    this.contextDim = config.captionWidth;
  }

  get target(): LoraTarget {
    return { kind: "z-image", weights: this.part.weights };
  }

  adapted(adapter: Adapter): BuiltZImage {
    return new BuiltZImage(this.runtime, this.part.adapted(adapter));
  }

  labelInputs(): NamedTensors {
    return {};
  }

  forRun({ steps }: SamplingRun): NetworkRun {
    const rotations = new Rotations(this.part.config.headSize);
    return { predict: (call) => this.#predict(call, rotations, steps) };
  }

  async #predict({ x, timestep, context, entry, signal }: NetworkCall, rotations: Rotations, calls: number) {
    if (entry[1].control !== undefined && entry[1].control !== null) {
      const message = `${this.label} is guided by model patches (ModelPatchLoader), not by a ControlNet.`;
      throw new LatentkitError("host.missing", message);
    }
    const [items, , height, width] = x.shape as [number, number, number, number];
    const even = evenSides(x);
    const tables = rotations.of(context.shape[1]!, [even.shape[2]! / 2, even.shape[3]! / 2]);
    // one rounding an operation, as in the source: sines of it come next
    const time = Math.fround(Math.fround(1 - timestep) * TIME_STEPS);
    const feeds = { x: even, context, timestep: Tensor.full([items], time), ...tables };
    const session = this.part.session("Z-Image", buildZImage);
    const options = { signal, keep: ["context", ...Object.keys(tables)], calls };
    const { out } = await this.runtime.run(session, feeds, options);
    return even === x ? out! : cropped(out!, 2, { top: 0, left: 0, height, width });
  }
}

/** A picture [B, C, h, w] with its first row after an odd number of rows, and so for columns. */
function evenSides(x: Tensor): Tensor {
  const even = (picture: Tensor, axis: number): Tensor =>
    picture.shape[axis]! % 2 === 0 ? picture : joined([picture, narrowed(picture, axis, 0, 1)], axis);
  return even(even(x, 2), 3);
}

/** Rotations of both sequences of a call, the same tensors for the same lengths. */
class Rotations {
  readonly #axes: readonly number[];
  readonly #known = new Map<string, NamedTensors>();

  constructor(headSize: number) {
    this.#axes = AXES.map((part) => (headSize / 16) * part);
  }

  of(captions: number, [rows, columns]: readonly [number, number]): NamedTensors {
    const key = `${captions} ${rows} ${columns}`;
    const known = this.#known.get(key) ?? this.#compute(captions, [rows, columns]);
    if (this.#known.size === MOST_ROTATIONS) this.#known.delete(this.#known.keys().next().value!);
    this.#known.set(key, known);
    return known;
  }

  #compute(captions: number, cells: readonly [number, number]): NamedTensors {
    const positions = zImagePositions(captions, cells, PADDING);
    const caption = rotationTables(positions.caption, this.#axes, THETA);
    const image = rotationTables(positions.image, this.#axes, THETA);
    return { caption_cos: caption.cos, caption_sin: caption.sin, image_cos: image.cos, image_sin: image.sin };
  }
}
