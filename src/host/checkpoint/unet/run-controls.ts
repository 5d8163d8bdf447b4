import { LatentkitError } from "../../../base/errors.js";
import { channelsFirst, firstChannels } from "../../../tensor/channels.js";
import { weightedSum } from "../../../tensor/ops.js";
import { cycled } from "../../../tensor/parts.js";
import { resizeImage } from "../../../tensor/resize.js";
import { borderAt } from "../../../tensor/sampling/noise-level.js";
import { fourSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, Control, SamplingRun } from "../../types.js";
import { type Adapter, fileStateKey, type ModelPart } from "../session/model-part.js";
import type { Feeds, Runtime, Stage } from "../session/runtime.js";
import { floatsOf, type WeightChange } from "../weights/network.js";
import { additionTo, type UnetConfig } from "./build.js";
import { buildControlNet, CheckpointControlNet, type ControlNetConfig } from "./control.js";
import { CheckpointControlLora } from "./control-lora.js";
import { buildT2iAdapter, CheckpointT2iAdapter, t2iCells, t2iWork, targetsOf } from "./t2i-adapter.js";

/** Inputs that a network takes beside those of control nets. */
export interface NetworkFeeds {
  readonly x: Tensor;
  readonly timestep: Tensor;
  readonly context: Tensor;
  readonly y?: Tensor;
}

/** The control nets of one call of a UNet. */
interface CallControls {
  /** Number of nets, including those inactive at this noise level: one session serves all levels. */
  readonly count: number;
  /** The nets active at this noise level. */
  readonly stages: readonly Stage[];
  /** Inputs of the UNet in place of the others. */
  readonly zeros: Readonly<Record<string, Tensor>>;
  /** Keys of blocks that T2I-Adapters add to, active or not, and the inputs of the UNet for them. */
  readonly added: readonly string[];
  readonly additions: Readonly<Record<string, Tensor>>;
}

/** A picture's features for a T2I-Adapter's targets, in the size of a call. */
type Features = readonly Tensor[];

/** Pixels along a side of a latent's cell. */
const CELL = 8;
const COLOURS = 3;

// decisions: A ControlNet has a session of its own
/** Control nets of a run, with the UNet that they guide. */
export class RunControls {
  readonly #runtime: Runtime;
  readonly #unet: ModelPart<UnetConfig>;
  readonly #run: SamplingRun;
  /** Hints in the size and number of the last call. */
  readonly #hints = new WeakMap<Control, Tensor>();
  /** Nets that need the UNet's weights, with these. */
  readonly #parts = new WeakMap<object, ModelPart<ControlNetConfig>>();
  /** Features of T2I-Adapters, and their sums, by the sizes of calls: the same tensors at each step. */
  readonly #features = new WeakMap<Control, Map<string, Promise<Features>>>();
  readonly #additions = new Map<string, Tensor>();
  readonly #numbers = new WeakMap<Control, number>();
  #count = 0;

  constructor(runtime: Runtime, unet: ModelPart<UnetConfig>, run: SamplingRun) {
    this.#runtime = runtime;
    this.#unet = unet;
    this.#run = run;
  }

  /** The control nets of a call, whose entries share them. Fails with host.missing and value.invalid. */
  async of(
    entry: Conditioning[number],
    feeds: NetworkFeeds,
    sigma: number,
    signal?: AbortSignal,
  ): Promise<CallControls> {
    const chain: Control[] = [];
    let control = entry[1].control as Control | undefined | null;
    for (; control !== undefined && control !== null; control = control.previous) chain.push(control);
    const adapters = chain.filter(({ net }) => net instanceof CheckpointT2iAdapter);
    const all = chain.filter((each) => !adapters.includes(each));
    const stages = all.filter((each) => this.#counts(each, sigma)).map((each) => this.#stage(each, feeds));
    const missing = Array.from({ length: all.length - stages.length }, (_, index) => stages.length + index);
    const zeros = Object.assign({}, ...missing.map((net) => this.#zeros(net)));
    const added = [...new Set(adapters.flatMap(({ net }) => targetsOf((net as CheckpointT2iAdapter).part.config)))];
    const additions = await this.#added(adapters, added, feeds.x, sigma, signal);
    return { count: all.length, stages, zeros, added, additions };
  }

  /** The inputs of a UNet after these blocks: sums of the adapters that count at a noise level, or zeros. */
  async #added(
    adapters: readonly Control[],
    added: readonly string[],
    x: Tensor,
    sigma: number,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, Tensor>>> {
    const active = adapters.filter((each) => this.#counts(each, sigma));
    const features = await Promise.all(active.map((each) => this.#featuresOf(each, x, signal)));
    const numbers = active.map((each) => this.#numberOf(each)).join(" ");
    const inputs = added.map((target) => {
      const key = `${target} ${x.shape.join(" ")}: ${numbers}`;
      const known = this.#additions.get(key);
      if (known !== undefined) return [additionTo(target), known] as const;
      const terms = active.flatMap(({ net, strength }, index) => {
        const level = targetsOf((net as CheckpointT2iAdapter).part.config).indexOf(target);
        return level < 0 ? [] : [[strength, features[index]![level]!] as const];
      });
      const sum = terms.length === 0 ? Tensor.zeros([1, this.#channelsAt(target), 1, 1]) : weightedSum(terms);
      this.#additions.set(key, sum);
      return [additionTo(target), sum] as const;
    });
    return Object.fromEntries(inputs);
  }

  #numberOf(control: Control): number {
    const number = this.#numbers.get(control) ?? this.#count++;
    this.#numbers.set(control, number);
    return number;
  }

  /** Features of a picture for calls of the size of x, one for each latent. */
  #featuresOf(control: Control, { shape }: Tensor, signal?: AbortSignal): Promise<Features> {
    const bySize = this.#features.get(control) ?? new Map<string, Promise<Features>>();
    this.#features.set(control, bySize);
    const key = shape.join(" ");
    const features = bySize.get(key) ?? this.#makeFeatures(control, shape, signal);
    bySize.set(key, features);
    return features;
  }

  async #makeFeatures({ net, hint }: Control, shape: readonly number[], signal?: AbortSignal): Promise<Features> {
    const { part } = net as CheckpointT2iAdapter;
    const [items, , rows, columns] = shape as [number, number, number, number];
    const cells = t2iCells(part.config, hint, [rows, columns]);
    const session = part.session("T2I-Adapter", buildT2iAdapter, { work: t2iWork(part.config) });
    const outputs = await this.#runtime.run(session, { cells }, { signal });
    return targetsOf(part.config).map((target, level) => {
      const features = outputs[`level_${level}`]!;
      if (features.shape[1] !== this.#channelsAt(target)) throw otherFamily(part, this.#unet);
      return this.#forItems(features, items);
    });
  }

  /** Channels of the output of a block; 0 if the UNet lacks it. */
  #channelsAt(key: string): number {
    const { input, middle } = this.#unet.config;
    const block = key === "middle_block" ? (middle ?? input.at(-1)) : input[Number(key.split(".")[1])];
    return block?.channels ?? 0;
  }

  /** Planes of pictures, one for all items of a call or one for each. */
  #forItems(planes: Tensor, items: number): Tensor {
    return planes.shape[0] === 1 ? planes : cycled(cycled(planes, this.#run.latent.shape[0]!), items);
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
    const kinds = kindsOf(control, part.config);
    return {
      source,
      feeds: { x, timestep, context, ...labels, hint, strength, ...kinds },
      keep: ["context", "y", "hint"],
    };
  }

  /** The net of a control, with the UNet's weights if it needs them. Fails with host.missing, value.invalid. */
  #partOf({ net }: Control): ModelPart<ControlNetConfig> {
    if (net instanceof CheckpointControlLora) return this.#withUnet(net, () => net.on(this.#unet));
    if (!(net instanceof CheckpointControlNet))
      throw new LatentkitError("host.missing", `host "checkpoint" cannot run a ControlNet that another host loaded.`);
    const { part, isDifference } = net;
    const [own, other] = [part.config, this.#unet.config];
    const isSame = own.contextDim === other.contextDim && own.labelDim === other.labelDim;
    const hasBlocks =
      own.input.length === other.input.length &&
      own.input.every(({ channels }, index) => channels === other.input[index]!.channels);
    if (!isSame || !hasBlocks) throw otherFamily(part, this.#unet);
    if (isDifference && own.inChannels !== other.inChannels) {
      const message = `${part.label} is stored as differences, which need a model with ${own.inChannels} input channels; ${this.#unet.label} has ${other.inChannels}.`;
      throw new LatentkitError("value.invalid", message);
    }
    return isDifference ? this.#withUnet(part, () => part.adapted(sumWith(this.#unet))) : part;
  }

  #withUnet(net: object, make: () => ModelPart<ControlNetConfig>): ModelPart<ControlNetConfig> {
    const part = this.#parts.get(net) ?? make();
    this.#parts.set(net, part);
    return part;
  }

  #hintOf(control: Control, { shape }: Tensor): Tensor {
    const [items, , rows, columns] = shape as [number, number, number, number];
    const [height, width] = [rows * CELL, columns * CELL];
    const known = this.#hints.get(control);
    const isFit = known?.shape[2] === height && known.shape[3] === width && [1, items].includes(known.shape[0]!);
    if (known !== undefined && isFit) return known;
    fourSides("ControlNet", control.hint, "[B, H, W, C]");
    const colours = firstChannels(control.hint, COLOURS);
    const sized = resizeImage(colours, { method: "nearest-exact", height, width, crop: "center" });
    const planes = channelsFirst(sized);
    const hint = this.#forItems(planes, items);
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

/** The kind of a hint, if a net takes several, 1 at its number and 0 elsewhere. */
function kindsOf({ net }: Control, { union }: ControlNetConfig): Readonly<Record<string, Tensor>> {
  if (union === undefined) return {};
  const kinds = Tensor.zeros([1, union.types]);
  if (net instanceof CheckpointControlNet && net.type >= 0) kinds.data[net.type] = 1;
  return { kinds };
}

const otherFamily = (net: ModelPart<unknown>, unet: ModelPart<unknown>): LatentkitError =>
  new LatentkitError("value.invalid", `${net.label} is for a different model family than ${unet.label}.`);

/** Adds the weights of a UNet to those of the same key. */
function sumWith({ file, weights }: ModelPart<unknown>): Adapter {
  const changes = new Map<string, readonly WeightChange[]>();
  for (const [key, stored] of weights) {
    changes.set(key, [(graph, weight) => graph.node("Add", [weight, floatsOf(graph, stored)])]);
  }
  return { key: `sum with ${fileStateKey(file)}`, file, changes };
}
