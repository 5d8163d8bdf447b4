import { LatentkitError } from "../../../base/errors.js";
import { cropped, repeated } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, ModelPatch, SamplingRun } from "../../types.js";
import { type ControlInput, ControlPictures, controlOf, evenSides } from "../diffusion/control-pictures.js";
import {
  type DiffusionNetwork,
  haveOneLength,
  type NamedTensors,
  type NetworkCall,
  type NetworkRun,
} from "../diffusion/model.js";
import { Recent } from "../files/recent.js";
import type { LoraTarget } from "../lora/places.js";
import { type Position, rotationTables, timeEmbeddings } from "../networks/sinusoids.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { Network } from "../weights/network.js";
import { buildZImage, PADDING, type ZImageConfig, zImageWork } from "./build.js";
import type { ZImageControlConfig } from "./control.js";
import { zImagePlaces } from "./names.js";

/** Numbers of a head that turn by the token's place in time, its row and its column, in sixteenths. */
const AXES = [4, 6, 6] as const;
const THETA = 256;
/** Steps of the time that the network takes, from 0 (noise) to 1000. */
const TIME_STEPS = 1000;
/** Nodes that add a control net. */
const CONTROL_NODES: readonly string[] = ["QwenImageDiffsynthControlnet", "ZImageFunControlnet"];
/** Sizes of captions and areas whose rotations stay computed in a run: a regional prompt has a few. */
const MOST_ROTATIONS = 8;

/** A Z-Image transformer whose graph is built over the weights of a file. */
export class BuiltZImage implements DiffusionNetwork {
  readonly label: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim: number;

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<ZImageConfig>,
    readonly controls: readonly ControlInput<ZImageControlConfig>[] = [],
  ) {
    const { label, config } = part;
    this.label = label;
    this.inChannels = config.channels;
    this.outChannels = config.channels;
    this.contextDim = config.captionWidth;
  }

  get target(): LoraTarget {
    return { weights: this.part.weights, places: zImagePlaces };
  }

  adapted(adapter: Adapter): BuiltZImage {
    return new BuiltZImage(this.runtime, this.part.adapted(adapter), this.controls);
  }

  patched(patch: ModelPatch): BuiltZImage | undefined {
    if (!CONTROL_NODES.includes(patch.node)) return undefined;
    const { width } = this.part.config;
    const control = controlOf<ZImageControlConfig>(patch, { family: "z-image", label: this.label, width });
    return new BuiltZImage(this.runtime, this.part, [...this.controls, control]);
  }

  canShare(entries: Conditioning): boolean {
    return haveOneLength(entries);
  }

  labelInputs(): NamedTensors {
    return {};
  }

  forRun(run: SamplingRun): NetworkRun {
    const rotations = new Recent<NamedTensors>(MOST_ROTATIONS);
    const controls = new ControlPictures(this.controls, run);
    return { predict: async (call) => this.#predict(call, rotations, await controls.of(call.x), run.steps) };
  }

  async #predict(
    { x, timestep, context, entry, signal }: NetworkCall,
    rotations: Recent<NamedTensors>,
    controls: NamedTensors,
    calls: number,
  ): Promise<Tensor> {
    if (entry[1].control !== undefined && entry[1].control !== null) {
      const message = `${this.label} takes control nets as model patches (ModelPatchLoader), not as a ControlNet.`;
      throw new LatentkitError("host.missing", message);
    }
    const [items, , height, width] = x.shape as [number, number, number, number];
    const even = evenSides(x);
    const captions = context.shape[1]!;
    const cells = [even.shape[2]! / 2, even.shape[3]! / 2] as const;
    // the same tensors for the same sizes, so that they are sent once
    const tables = rotations.getOr(`${captions} ${cells}`, () =>
      rotationsOf(captions, cells, this.part.config.headSize),
    );
    // one rounding an operation, as in the source: sines of it come next
    const time = Math.fround(Math.fround(1 - timestep) * TIME_STEPS);
    // Embedded outside of the graph: sines of some hundred radians are rough on GPUs.
    const embedding = repeated(timeEmbeddings([time]), items);
    const feeds = { x: even, context, embedding, ...tables, ...controls };
    const nets = this.controls.map(({ part }) => part);
    const build = (network: Network, config: ZImageConfig, others: readonly Network[]) =>
      buildZImage(network, config, {
        controls: others.map((other, index) => ({ network: other, config: nets[index]!.config })),
      });
    const session = this.part.session("Z-Image", build, { beside: nets, work: zImageWork(this.part.config) });
    const options = { signal, keep: ["context", ...Object.keys(tables), ...Object.keys(controls)], calls };
    const { out } = await this.runtime.run(session, feeds, options);
    return even === x ? out! : cropped(out!, 2, { top: 0, left: 0, height, width });
  }
}

/** The rotations of both sequences of a call. */
function rotationsOf(captions: number, cells: readonly [number, number], headSize: number): NamedTensors {
  const positions = zImagePositions(captions, cells, PADDING);
  const axes = AXES.map((part) => (headSize / 16) * part);
  const caption = rotationTables(positions.caption, axes, THETA);
  const image = rotationTables(positions.image, axes, THETA);
  return { caption_cos: caption.cos, caption_sin: caption.sin, image_cos: image.cos, image_sin: image.sin };
}

/**
 * Positions of the two sequences: captions, padded, one after another; cells by row and column after them.
 *
 * @internal
 */
export function zImagePositions(
  captions: number,
  [rows, columns]: readonly [number, number],
  padding: number,
): { readonly caption: readonly Position[]; readonly image: readonly Position[] } {
  const up = (length: number): number => Math.ceil(length / padding) * padding;
  const length = up(captions);
  const cells = rows * columns;
  return {
    caption: Array.from({ length }, (_, index) => [index + 1, 0, 0]),
    image: Array.from({ length: up(cells) }, (_, index) =>
      index < cells ? [length + 1, Math.floor(index / columns), index % columns] : [0, 0, 0],
    ),
  };
}
