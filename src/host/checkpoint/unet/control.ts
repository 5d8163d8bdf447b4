import { LatentkitError } from "../../../base/errors.js";
import type { ControlNet } from "../../types.js";
import { add, conv, layerNorm, linear, quickGelu, reshape, silu } from "../networks/layers.js";
import { sinusoids } from "../networks/sinusoids.js";
import type { Value } from "../onnx/graph.js";
import { below, type ModelHeader, type Part, PartShapes, renamed, unwrappedFile } from "../recognition/part.js";
import { kindInWords } from "../recognition/refusal.js";
import type { ModelPart } from "../session/model-part.js";
import type { Network } from "../weights/network.js";
import { type StoredWeight, unsupported, type WeightMap } from "../weights/stored.js";
import { embedding } from "./blocks.js";
import { downBlocks, middleBlock, type Picture, type UnetEncoderConfig, unetInputs } from "./build.js";
import { diffusersRenames, unetEncoderConfig } from "./recognise.js";

/** A ControlNet of a file; models of the same host run it. */
export class CheckpointControlNet implements ControlNet {
  readonly part: ModelPart<ControlNetConfig>;
  /** Whether its weights are differences to those of the UNet that it is used with. */
  readonly isDifference: boolean;
  /** Kind of its picture, if it takes several; -1: the net decides. */
  readonly type: number;

  constructor(part: ModelPart<ControlNetConfig>, isDifference: boolean, type = -1) {
    this.part = part;
    this.isDifference = isDifference;
    this.type = type;
  }

  /** The net for one kind of picture; a net for one kind decides itself. Throws value.invalid for a kind that it lacks. */
  ofType(type: number): ControlNet {
    const { label, config } = this.part;
    if (config.union === undefined) return this;
    const { types } = config.union;
    if (type < types) return new CheckpointControlNet(this.part, this.isDifference, type);
    throw new LatentkitError(
      "value.invalid",
      `${label} takes ${types} kinds of pictures, not the one numbered ${type}.`,
    );
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
/** Table of a net for several kinds of pictures. */
const UNION_MARK = "task_embedding";
const LATENT_CHANNELS = 4;
/** Roots of a net's layers. */
export const ROOTS = ["time_embed.", "label_emb.", "input_blocks.", "middle_block", "zero_convs.", "input_hint_block."];
const UNION_ROOTS = ["transformer_layes.", "spatial_ch_projs.", "control_add_embedding."];

/** Whether a ControlNet is among the weights, complete or not. */
export const hasControlNet = (weights: WeightMap): boolean =>
  PREFIXES.some((prefix) => MARKS.some((mark) => weights.has(prefix + mark)));

/** Sizes and weights of a ControlNet under LDM keys. Throws model.invalid, and model.unsupported for other files. */
export function controlNetPart(whole: ModelHeader): ControlNetPart {
  const file = unwrappedFile(whole, hasControlNet);
  for (const prefix of PREFIXES) {
    const own = below(file.weights, prefix);
    const isDiffusers = own.has(DIFFUSERS_MARK);
    if (!isDiffusers && !own.has(LDM_MARK)) continue;
    const { weights, nameInFile } = renamed(withDots(own), isDiffusers ? diffusersRenames(own) : [], prefix);
    // Flux and Stable Diffusion 3 have nets with blocks of their own
    if (!weights.has("input_blocks.0.0.weight")) break;
    const shapes = new PartShapes(file, weights, nameInFile);
    const config: ControlNetConfig = { ...unetEncoderConfig(shapes), union: unionConfig(shapes) };
    if (config.inChannels !== LATENT_CHANNELS)
      throw unsupported(file.name, EXPECTED, `one with ${config.inChannels} input channels`);
    const roots = config.union === undefined ? ROOTS : [...ROOTS, ...UNION_ROOTS];
    const used = shapes.check((network) => buildControlNet(network, config), roots, EXPECTED);
    return { config, weights: used, isDifference: own.has("difference") || file.weights.has("difference") };
  }
  throw unsupported(file.name, EXPECTED, kindInWords(file.weights));
}

/** The keys of attention in one matrix, as layers have theirs. */
function withDots(weights: WeightMap): WeightMap {
  if (!weights.has(UNION_MARK)) return weights;
  return new Map<string, StoredWeight>(
    [...weights].map(([key, weight]) => [key.replace(".in_proj_", ".in_proj."), weight]),
  );
}

function unionConfig(shapes: PartShapes): ControlNetConfig["union"] {
  if (!shapes.has(UNION_MARK)) return undefined;
  const [types] = shapes.sides(UNION_MARK, 2) as [number];
  return { types, mlp: shapes.sides("transformer_layes.0.mlp.c_fc.weight", 2)[0]! };
}

/** Structure of a control net: that of the UNet's way down. */
export interface ControlNetConfig extends UnetEncoderConfig {
  /** Kinds of pictures, and the width of the layer that tells them apart; absent: it takes one kind. */
  readonly union?: { readonly types: number; readonly mlp: number };
}

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

/** Numbers in which each kind of picture is embedded. */
const KIND_WIDTH = 256;

/**
 * Writes a control net. Inputs: x, timestep, context and y as the UNet takes them, hint [B or 1, 3, 8h, 8w] in 0…1,
 * strength [1], and for several kinds of pictures `kinds` [1, types], 1 for that of the hint, else 0. Outputs, times
 * strength: control_N for each input block and control_middle. Throws model.invalid for weights that are absent or have
 * other shapes. Source: ControlNet, cldm.py.
 */
export function buildControlNet(network: Network, config: ControlNetConfig): void {
  const { graph } = network;
  const { union, modelChannels } = config;
  const kinds = union && graph.input("kinds", "float", [1, union.types]);
  const inputs = unetInputs(network, config, { further: kinds && embeddedKinds(network, config, kinds) });
  const features = hintFeatures(network, graph.input("hint", "float", ["hints", 3, "8h", "8w"]), modelChannels);
  const hint = kinds === undefined ? features : ofKind(network, config, features, kinds);
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

/** Embedding [1, 4 modelChannels] of the kinds. */
function embeddedKinds(network: Network, { union, modelChannels }: ControlNetConfig, kinds: Value): Value {
  const { graph } = network;
  const { types } = union!;
  const [off, on] = [0, 1].map((value) => graph.floats(sinusoids(value, KIND_WIDTH), [1, 1, KIND_WIDTH]));
  const chosen = graph.node("Unsqueeze", [kinds, graph.ints([2])]);
  const others = graph.node("Sub", [graph.floats([1], []), chosen]);
  const all = add(graph, graph.node("Mul", [chosen, on!]), graph.node("Mul", [others, off!]));
  const keys = ["control_add_embedding.linear_1", "control_add_embedding.linear_2"] as const;
  return embedding(network, keys, reshape(graph, all, [1, types * KIND_WIDTH]), [types * KIND_WIDTH, modelChannels]);
}

/** Features of a hint with what a transformer makes of their mean and its kind; unchanged without a kind. */
function ofKind(network: Network, config: ControlNetConfig, features: Value, kinds: Value): Value {
  const { graph } = network;
  const { union, modelChannels: width } = config;
  const { types, mlp } = union!;
  const at = "transformer_layes.0";
  const mean = graph.node("ReduceMean", [features, graph.ints([2, 3])], { keepdims: { int: 0 } });
  let state = add(graph, mean, graph.node("MatMul", [kinds, network.weight("task_embedding", [types, width])]));
  // of one token attention takes the value
  const parts = linear(network, `${at}.attn.in_proj`, layerNorm(network, `${at}.ln_1`, state, width), [
    width,
    3 * width,
  ]);
  const [, , value] = graph.nodeWithOutputs("Split", [parts, graph.ints([width, width, width])], 3, {
    axis: { int: -1 },
  });
  state = add(graph, state, linear(network, `${at}.attn.out_proj`, value!, [width, width]));
  const normal = layerNorm(network, `${at}.ln_2`, state, width);
  const wide = quickGelu(graph, linear(network, `${at}.mlp.c_fc`, normal, [width, mlp]));
  state = add(graph, state, linear(network, `${at}.mlp.c_proj`, wide, [mlp, width]));
  const change = linear(network, "spatial_ch_projs", state, [width, width]);
  const isTyped = graph.node("ReduceSum", [kinds, graph.ints([1])]);
  const typed = graph.node("Mul", [change, isTyped]);
  return add(graph, features, reshape(graph, typed, [0, width, 1, 1]));
}
