import { LatentkitError } from "../../base/errors.js";
import { firstChannels } from "../../tensor/channels.js";
import { channelsFirst } from "../../tensor/image/planes.js";
import { cycled } from "../../tensor/parts.js";
import { resizeImage } from "../../tensor/resize.js";
import { borderAt } from "../../tensor/sampling/percent-to-sigma.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, Control, SamplingRun } from "../types.js";
import { CheckpointControlNet } from "./control-net.js";
import { type Adapter, type ModelPart, stateOf } from "./model-part.js";
import { buildControlNet } from "./networks/controlnet.js";
import type { UnetConfig } from "./networks/unet.js";
import type { Feeds, Stage } from "./runtime/runtime.js";
import { floatsOf, type WeightChange } from "./weights/network.js";

/** Inputs that a network takes beside those of control nets. */
export interface NetworkFeeds {
  readonly x: Tensor;
  readonly timestep: Tensor;
  readonly context: Tensor;
  readonly y?: Tensor;
}

/** The control nets of one call of a UNet. */
interface CallControls {
  /** Number of nets, those that do not count at this noise level among them: one session serves all levels. */
  readonly count: number;
  /** Those that count. */
  readonly stages: readonly Stage[];
  /** Inputs of the UNet in place of the others. */
  readonly zeros: Readonly<Record<string, Tensor>>;
}

/** Pixels along a side of a latent's cell. */
const CELL = 8;
const COLOURS = 3;

// decision 222
/** Control nets of a run, with the UNet that they guide. */
export class RunControls {
  readonly #unet: ModelPart<UnetConfig>;
  readonly #run: SamplingRun;
  /** Hints in the size and number of the last call. */
  readonly #hints = new WeakMap<Control, Tensor>();
  /** Nets that are differences, with the UNet's weights added. */
  readonly #sums = new WeakMap<object, CheckpointControlNet["part"]>();

  constructor(unet: ModelPart<UnetConfig>, run: SamplingRun) {
    this.#unet = unet;
    this.#run = run;
  }

  /** The control nets of a call, whose entries share them. Fails with host.missing and value.invalid. */
  of(entry: Conditioning[number], feeds: NetworkFeeds, sigma: number): CallControls {
    const all: Control[] = [];
    let control = entry[1].control as Control | undefined | null;
    for (; control !== undefined && control !== null; control = control.previous) all.push(control);
    const stages = all.filter((each) => this.#counts(each, sigma)).map((each) => this.#stage(each, feeds));
    const missing = Array.from({ length: all.length - stages.length }, (_, index) => stages.length + index);
    return { count: all.length, stages, zeros: Object.assign({}, ...missing.map((net) => this.#zeros(net))) };
  }

  #counts({ start, end }: Control, sigma: number): boolean {
    const { sampling } = this.#run;
    return sigma <= borderAt(sampling, start) && sigma >= borderAt(sampling, end);
  }

  #stage(control: Control, feeds: NetworkFeeds): Stage {
    const part = this.#partOf(control);
    const source = { ...part.session("control net", buildControlNet), isStage: true };
    const { x, timestep, context, y } = feeds;
    const labels: Feeds = part.config.labelDim === undefined || y === undefined ? {} : { y };
    const hint = this.#hintOf(control, feeds.x);
    const strength = Tensor.full([1], control.strength);
    return { source, feeds: { x, timestep, context, ...labels, hint, strength }, keep: ["context", "y", "hint"] };
  }

  /** The net of a control, with what the UNet's own weights add to it. Fails with host.missing and value.invalid. */
  #partOf({ net }: Control): CheckpointControlNet["part"] {
    if (!(net instanceof CheckpointControlNet))
      throw new LatentkitError("host.missing", 'host "checkpoint": it cannot run a ControlNet of another host.');
    const { part, isDifference } = net;
    const [own, other] = [part.config, this.#unet.config];
    const isSame = own.contextDim === other.contextDim && own.labelDim === other.labelDim;
    const hasBlocks =
      own.input.length === other.input.length &&
      own.input.every(({ channels }, index) => channels === other.input[index]!.channels);
    if (!isSame || !hasBlocks) {
      const message = `${part.label} is for models of another family than ${this.#unet.label}.`;
      throw new LatentkitError("value.invalid", message);
    }
    if (isDifference && own.inChannels !== other.inChannels) {
      const message = `${part.label} is stored as differences, which need a model of ${own.inChannels} input channels; ${this.#unet.label} has ${other.inChannels}.`;
      throw new LatentkitError("value.invalid", message);
    }
    if (!isDifference) return part;
    const sum = this.#sums.get(part) ?? part.adapted(sumWith(this.#unet));
    this.#sums.set(part, sum);
    return sum;
  }

  #hintOf(control: Control, { shape }: Tensor): Tensor {
    const [items, , rows, columns] = shape as [number, number, number, number];
    const [height, width] = [rows * CELL, columns * CELL];
    const known = this.#hints.get(control);
    const isFit = known?.shape[2] === height && known.shape[3] === width && [1, items].includes(known.shape[0]!);
    if (known !== undefined && isFit) return known;
    fourSides("ControlNet", control.hint, "[B, H, W, C]");
    const colours = firstChannels(control.hint, COLOURS);
    const batch = this.#run.latent.shape[0]!;
    const sized = resizeImage(colours, { method: "nearest-exact", height, width, crop: "center" });
    const planes = channelsFirst(sized);
    const hint = planes.shape[0] === 1 ? planes : cycled(cycled(planes, batch), items);
    this.#hints.set(control, hint);
    return hint;
  }

  /** Inputs for a net that adds nothing. */
  #zeros(net: number): Record<string, Tensor> {
    const { input, middle } = this.#unet.config;
    const zero = (channels: number): Tensor => Tensor.zeros([1, channels, 1, 1]);
    const entries = input.map(({ channels }, index) => [`control_${index}.${net}`, zero(channels)] as const);
    return { ...Object.fromEntries(entries), [`control_middle.${net}`]: zero((middle ?? input.at(-1)!).channels) };
  }
}

/** Adds the weights of a UNet to those of the same key. */
function sumWith({ file, weights }: ModelPart<unknown>): Adapter {
  const changes = new Map<string, readonly WeightChange[]>();
  for (const [key, stored] of weights) {
    changes.set(key, [(graph, weight) => graph.node("Add", [weight, floatsOf(graph, stored)])]);
  }
  return { key: `sum with ${stateOf(file)}`, file, changes };
}
