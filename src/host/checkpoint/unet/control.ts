import { LatentkitError } from "../../../base/errors.js";
import { channelsFirst, firstChannels } from "../../../tensor/channels.js";
import { cycled } from "../../../tensor/parts.js";
import { resizeImage } from "../../../tensor/resize.js";
import { borderAt } from "../../../tensor/sampling/noise-level.js";
import { fourSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, Control, ControlNet, SamplingRun } from "../../types.js";
import { conv, silu } from "../networks/layers.js";
import type { Value } from "../onnx/graph.js";
import { below, type ModelHeader, type Part, PartShapes, renamed, unwrappedFile } from "../recognition/part.js";
import { foreignKind } from "../recognition/refusal.js";
import { type Adapter, fileStateKey, type ModelPart } from "../session/model-part.js";
import type { Feeds, Stage } from "../session/runtime.js";
import { floatsOf, type Network, type WeightChange } from "../weights/network.js";
import { unsupported } from "../weights/stored.js";
import { downBlocks, middleBlock, type Picture, type UnetConfig, type UnetEncoderConfig, unetInputs } from "./build.js";
import { diffusersRenames, unetEncoderConfig } from "./recognise.js";

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
}

/** Pixels along a side of a latent's cell. */
const CELL = 8;
const COLOURS = 3;

// decisions: A ControlNet has a session of its own
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

  /** The net of a control, plus the UNet's weights if it is stored as differences. Fails with host.missing, value.invalid. */
  #partOf({ net }: Control): CheckpointControlNet["part"] {
    if (!(net instanceof CheckpointControlNet))
      throw new LatentkitError("host.missing", `host "checkpoint" cannot run a ControlNet that another host loaded.`);
    const { part, isDifference } = net;
    const [own, other] = [part.config, this.#unet.config];
    const isSame = own.contextDim === other.contextDim && own.labelDim === other.labelDim;
    const hasBlocks =
      own.input.length === other.input.length &&
      own.input.every(({ channels }, index) => channels === other.input[index]!.channels);
    if (!isSame || !hasBlocks) {
      const message = `${part.label} is for a different model family than ${this.#unet.label}.`;
      throw new LatentkitError("value.invalid", message);
    }
    if (isDifference && own.inChannels !== other.inChannels) {
      const message = `${part.label} is stored as differences, which need a model with ${own.inChannels} input channels; ${this.#unet.label} has ${other.inChannels}.`;
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
  return { key: `sum with ${fileStateKey(file)}`, file, changes };
}

/** A ControlNet of a file; models of the same host run it. */
export class CheckpointControlNet implements ControlNet {
  readonly part: ModelPart<ControlNetConfig>;
  /** Whether its weights are differences to those of the UNet that it is used with. */
  readonly isDifference: boolean;

  constructor(part: ModelPart<ControlNetConfig>, isDifference: boolean) {
    this.part = part;
    this.isDifference = isDifference;
  }

  /** One kind of picture: the net decides. */
  ofType(): ControlNet {
    return this;
  }
}

/** A control net of a file. */
export interface ControlNetPart extends Part<ControlNetConfig> {
  /** Whether its weights are differences to those of the UNet that it is used with. */
  readonly isDifference: boolean;
}

const EXPECTED = "a ControlNet of Stable Diffusion 1, 2 or XL";
const PREFIXES = ["control_model.", ""];
/** Keys of the layers that no UNet has. */
const LDM_MARK = "zero_convs.0.0.weight";
const DIFFUSERS_MARK = "controlnet_down_blocks.0.weight";
const MARKS = [LDM_MARK, DIFFUSERS_MARK];
/** Layers of nets for several kinds of pictures, and of nets that work on latents. */
const OTHER_KINDS = [
  ["task_embedding", "a ControlNet for several kinds of pictures"],
  ["control_add_embedding.linear_1.weight", "a ControlNet for several kinds of pictures"],
  ["lora_controlnet", "a Control-LoRA"],
] as const;
const LATENT_CHANNELS = 4;
const ROOTS = ["time_embed.", "label_emb.", "input_blocks.", "middle_block", "zero_convs.", "input_hint_block."];

/** Sizes and weights of a ControlNet under LDM keys. Throws model.invalid, and model.unsupported for other files. */
export function controlNetPart(whole: ModelHeader): ControlNetPart {
  const file = unwrappedFile(whole, (weights) =>
    PREFIXES.some((prefix) => MARKS.some((mark) => weights.has(prefix + mark))),
  );
  for (const prefix of PREFIXES) {
    const own = below(file.weights, prefix);
    const other = OTHER_KINDS.find(([key]) => own.has(key));
    if (other !== undefined) throw unsupported(file.name, EXPECTED, other[1]);
    const isDiffusers = own.has(DIFFUSERS_MARK);
    if (!isDiffusers && !own.has(LDM_MARK)) continue;
    const { weights, nameInFile } = renamed(own, isDiffusers ? diffusersRenames(own) : [], prefix);
    // Flux and Stable Diffusion 3 have nets with blocks of their own
    if (!weights.has("input_blocks.0.0.weight")) break;
    const shapes = new PartShapes(file, weights, nameInFile);
    const config = unetEncoderConfig(shapes);
    if (config.inChannels !== LATENT_CHANNELS)
      throw unsupported(file.name, EXPECTED, `one with ${config.inChannels} input channels`);
    const used = shapes.check((network) => buildControlNet(network, config), ROOTS, EXPECTED);
    return { config, weights: used, isDifference: own.has("difference") || file.weights.has("difference") };
  }
  throw unsupported(file.name, EXPECTED, foreignKind(file.weights) ?? "unknown keys");
}

/** Structure of a control net: that of the UNet's way down. */
type ControlNetConfig = UnetEncoderConfig;

/** Channels after each convolution of the hint but the last, and its stride: the sides of a picture become those of a latent. */
const HINT_LAYERS = [
  [16, 1],
  [16, 1],
  [32, 2],
  [32, 1],
  [96, 2],
  [96, 1],
  [256, 2],
] as const;

/**
 * Writes a control net. Inputs: x, timestep, context and y as the UNet takes them, hint [B or 1, 3, 8h, 8w] in 0…1 and
 * strength [1]. Outputs, times strength: control_N for each input block and control_middle. Throws model.invalid for weights
 * that are absent or have other shapes. Source: ControlNet, cldm.py.
 */
export function buildControlNet(network: Network, config: ControlNetConfig): void {
  const { graph } = network;
  const inputs = unetInputs(network, config);
  const hint = hintFeatures(network, graph.input("hint", "float", ["hints", 3, "8h", "8w"]), config.modelChannels);
  const strength = graph.input("strength", "float", [1]);
  const outputs = downBlocks(network, config, inputs, { hint });
  const middle = middleBlock(network, config, inputs, outputs.at(-1)!);
  const write = (name: string, key: string, { value, channels }: Picture): void => {
    const residual = conv(network, key, value, [channels, channels], { kernel: 1 });
    const scaled = graph.node("Mul", [residual, strength]);
    graph.output(scaled, name, "float", ["B", channels, `h_${name}`, `w_${name}`]);
  };
  for (const [index, picture] of outputs.entries()) write(`control_${index}`, `zero_convs.${index}.0`, picture);
  write("control_middle", "middle_block_out.0", middle);
}

/** Features of a hint at the size of the latent, [B, modelChannels, h, w]. */
function hintFeatures(network: Network, hint: Value, modelChannels: number): Value {
  let value = hint;
  let inputs = 3;
  for (const [index, [channels, stride]] of HINT_LAYERS.entries()) {
    value = silu(
      network.graph,
      conv(network, `input_hint_block.${2 * index}`, value, [inputs, channels], { kernel: 3, stride }),
    );
    inputs = channels;
  }
  return conv(network, `input_hint_block.${2 * HINT_LAYERS.length}`, value, [inputs, modelChannels], { kernel: 3 });
}
