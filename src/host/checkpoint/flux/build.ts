import type { Tensor } from "../../../tensor/tensor.js";
import { add, attention, FLOAT_BYTES, linear, linearOfFew, silu, type Trace } from "../networks/layers.js";
import { TIME_EMBEDDING, timeEmbeddings } from "../networks/sinusoids.js";
import {
  geluTanh,
  headNorm,
  joined,
  modulation,
  plainNorm,
  type Rotation,
  rotated,
  rotationInputs,
  scaled,
  split,
} from "../networks/transformer-layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";

/** Sizes of a Flux.1 transformer. */
export interface FluxConfig extends StreamSizes {
  /** Numbers of a patch that it takes: 64 of the latent, Fill and Control have more. */
  readonly inputs: number;
  /** Numbers of a patch that it makes. */
  readonly outputs: number;
  /** Numbers of a text's token. */
  readonly contextWidth: number;
  /** Numbers of the pooled text. */
  readonly pooledWidth: number;
  readonly doubleBlocks: number;
  readonly singleBlocks: number;
  /** Whether it takes a guidance, as schnell does not. */
  readonly hasGuidance: boolean;
}

/** Factor of a time and a guidance before they are embedded. */
const TIME_FACTOR = 1000;

/** Bytes of a run beside the weights, for each value of x and of context: those of a token in a block of one stream. */
export function fluxWork({ width, inputs, contextWidth }: FluxConfig): Readonly<Record<string, number>> {
  const ofToken = FLOAT_BYTES * 16 * width;
  return { x: ofToken / inputs, context: ofToken / contextWidth };
}

/**
 * Writes a Flux.1 transformer. Inputs: x [B, L, inputs], patches of the latent in model units, then those of references;
 * time [B, 256], as fluxEmbeddings makes it of noise levels; context [B, S, contextWidth]; y [B, pooledWidth], zeros for
 * none; `joint_cos` and `joint_sin` [S + L, headSize / 2], the rotations of the text's tokens and then of the patches; with
 * guidance `guidance` [B, 256], embedded too, and `guided` [B], 1 for an item that takes it and 0 for one that does not.
 * Output: out [B, L, outputs], the velocity.
 * Throws model.invalid for weights that are absent or have other shapes. Source: Flux, by the facts of its files.
 */
export function buildFlux(network: Network, config: FluxConfig, trace: Trace = () => {}): void {
  const { graph } = network;
  const { inputs, outputs, width, headSize, contextWidth } = config;
  const x = graph.input("x", "float", ["B", "L", inputs]);
  const vector = vectorOf(network, config, trace);
  const context = graph.input("context", "float", ["B", "S", contextWidth]);
  const rotation = rotationInputs(graph, "joint", "T", headSize, "neighbours");
  const inside: BlockContext = { network, sizes: config, rotation, trace };
  let streams: Streams<Value> = {
    img: linear(network, "img_in", x, [inputs, width]),
    txt: linear(network, "txt_in", context, [contextWidth, width]),
  };
  trace("img_in", streams.img);
  trace("txt_in", streams.txt);
  const changes = (key: string, count: number): Modulation[] => {
    const all = modulation(network, key, vector, width, 3 * count);
    trace(key, all);
    const parts = split(graph, all, new Array<number>(3 * count).fill(width));
    return Array.from({ length: count }, (_, i) => {
      const [shift, scale, gate] = parts.slice(3 * i);
      return { shift: shift!, scale: scale!, gate: gate! };
    });
  };
  for (let index = 0; index < config.doubleBlocks; index++) {
    const key = `double_blocks.${index}`;
    const both = (name: string) => changes(`${key}.${name}_mod.lin`, 2) as [Modulation, Modulation];
    streams = doubleBlock(inside, key, streams, { img: both("img"), txt: both("txt") });
  }
  let joint = joined(graph, [streams.txt, streams.img], 1);
  for (let index = 0; index < config.singleBlocks; index++) {
    const key = `single_blocks.${index}`;
    joint = singleBlock(inside, key, joint, changes(`${key}.modulation.lin`, 1)[0]!);
  }
  const patches = after(graph, joint, lengthOf(graph, streams.txt));
  const change = modulation(network, "final_layer.adaLN_modulation.1", vector, width, 2);
  const [shift, scale] = split(graph, change, [width, width]);
  const last = modulated(graph, patches, width, { shift: shift!, scale: scale! });
  const out = linear(network, "final_layer.linear", last, [width, outputs]);
  trace("final_layer", out);
  graph.output(out, "out", "float", ["B", "L", outputs]);
}

/** Embeddings [n, 256] of noise levels, or of guidances. */
export const fluxEmbeddings = (values: readonly number[]): Tensor =>
  // one rounding an operation, as in the source
  timeEmbeddings(values.map((value) => Math.fround(Math.fround(value) * TIME_FACTOR)));

/** Time, guidance and pooled text as one vector [B, width]. */
function vectorOf(network: Network, { width, pooledWidth, hasGuidance }: FluxConfig, trace: Trace): Value {
  const { graph } = network;
  const embedded = (name: string): Value => graph.input(name, "float", ["B", TIME_EMBEDDING]);
  const layers = (name: string, x: Value, size: number): Value => {
    const hidden = linearOfFew(network, `${name}.in_layer`, x, 2, [size, width]);
    const out = linearOfFew(network, `${name}.out_layer`, silu(graph, hidden), 2, [width, width]);
    trace(name, out);
    return out;
  };
  let vector = layers("time_in", embedded("time"), TIME_EMBEDDING);
  if (hasGuidance) {
    const guidance = layers("guidance_in", embedded("guidance"), TIME_EMBEDDING);
    const guided = graph.node("Unsqueeze", [graph.input("guided", "float", ["B"]), graph.ints([1])]);
    vector = add(graph, vector, graph.node("Mul", [guidance, guided]));
  }
  return add(graph, vector, layers("vector_in", graph.input("y", "float", ["B", pooledWidth]), pooledWidth));
}

// Blocks of two streams of tokens, [B, S, width] of a text and [B, L, width] of a picture, which attend to each other.

/** Sizes of the blocks. */
interface StreamSizes {
  readonly width: number;
  readonly heads: number;
  readonly headSize: number;
  /** Numbers between the two layers of an MLP. */
  readonly mlp: number;
  /** Endings of the norms of heads. */
  readonly norms: "scale" | "weight";
}

/** How one branch of a block is changed: each [B, 1, width]. */
export interface Modulation {
  readonly shift: Value;
  readonly scale: Value;
  readonly gate: Value;
}

/** Shared by both kinds of blocks. */
interface BlockContext {
  readonly network: Network;
  readonly sizes: StreamSizes;
  /** Rotation of both streams, the text's tokens first. */
  readonly rotation: Rotation;
  readonly trace: Trace;
}

interface Streams<T> {
  readonly txt: T;
  readonly img: T;
}

const EPSILON = 1e-6;
/** Parts in which queries are processed if attention is written out. */
const PARTS = 16;

/** (1 + scale) norm(x) + shift. */
export const modulated = (
  graph: OnnxGraph,
  x: Value,
  width: number,
  { shift, scale }: Omit<Modulation, "gate">,
): Value => add(graph, scaled(graph, plainNorm(graph, x, width, EPSILON), scale), shift);

/** x + gate · change. */
const gated = (graph: OnnxGraph, x: Value, gate: Value, change: Value): Value =>
  add(graph, x, graph.node("Mul", [gate, change]));

/** A block in which each stream has its own weights: changes for its attention, then for its MLP. */
function doubleBlock(
  context: BlockContext,
  key: string,
  streams: Streams<Value>,
  changes: Streams<readonly [Modulation, Modulation]>,
): Streams<Value> {
  const { network, sizes, trace } = context;
  const { graph } = network;
  const { width, mlp } = sizes;
  const heads = (name: "txt" | "img"): Heads => {
    const normal = modulated(graph, streams[name], width, changes[name][0]);
    const all = linear(network, `${key}.${name}_attn.qkv`, normal, [width, 3 * width]);
    trace(`${key}.${name}_attn.qkv`, all);
    return normalHeads(context, `${key}.${name}_attn.norm`, split(graph, all, [width, width, width]));
  };
  const [txt, img] = [heads("txt"), heads("img")];
  const both = (part: keyof Heads): Value => joined(graph, [txt[part], img[part]], 1);
  const mixed = jointAttention(context, { query: both("query"), key: both("key"), value: both("value") });
  const length = lengthOf(graph, streams.txt);
  const finished = (name: "txt" | "img", attended: Value): Value => {
    const [first, second] = changes[name];
    const out = linear(network, `${key}.${name}_attn.proj`, attended, [width, width]);
    trace(`${key}.${name}_attn.proj`, out);
    const x = gated(graph, streams[name], first.gate, out);
    const wide = linear(network, `${key}.${name}_mlp.0`, modulated(graph, x, width, second), [width, mlp]);
    trace(`${key}.${name}_mlp.0`, wide);
    const narrow = linear(network, `${key}.${name}_mlp.2`, geluTanh(graph, wide), [mlp, width]);
    trace(`${key}.${name}_mlp`, narrow);
    const result = gated(graph, x, second.gate, narrow);
    trace(`${key}.${name}`, result);
    return result;
  };
  return {
    txt: finished("txt", between(graph, mixed, graph.ints([0]), length)),
    img: finished("img", after(graph, mixed, length)),
  };
}

/** A block on the joint stream, the text's tokens first, whose attention and MLP stand side by side. */
function singleBlock(context: BlockContext, key: string, x: Value, change: Modulation): Value {
  const { network, sizes, trace } = context;
  const { graph } = network;
  const { width, mlp } = sizes;
  const all = linear(network, `${key}.linear1`, modulated(graph, x, width, change), [width, 3 * width + mlp]);
  trace(`${key}.linear1`, all);
  const [query, keys, value, wide] = split(graph, all, [width, width, width, mlp]);
  const heads = normalHeads(context, `${key}.norm`, [query!, keys!, value!]);
  const mixed = joined(graph, [jointAttention(context, heads), geluTanh(graph, wide!)], 2);
  const out = gated(graph, x, change.gate, linear(network, `${key}.linear2`, mixed, [width + mlp, width]));
  trace(key, out);
  return out;
}

interface Heads {
  readonly query: Value;
  readonly key: Value;
  readonly value: Value;
}

/** Queries and keys normalised head by head. */
function normalHeads({ network, sizes, trace }: BlockContext, key: string, parts: readonly Value[]): Heads {
  const { heads, headSize, norms } = sizes;
  const normal = (name: string, value: Value): Value => {
    const out = headNorm(network, `${key}.${name}.${norms}`, value, [heads, headSize], EPSILON);
    trace(`${key}.${name}`, out);
    return out;
  };
  return { query: normal("query_norm", parts[0]!), key: normal("key_norm", parts[1]!), value: parts[2]! };
}

/** Attention of all tokens on all, turned by their positions. */
function jointAttention({ network, sizes, rotation }: BlockContext, { query, key, value }: Heads): Value {
  const { graph } = network;
  const { heads, width } = sizes;
  const turned = (x: Value): Value => rotated(graph, x, heads, rotation);
  return attention(graph, [turned(query), turned(key), value], { heads, width, parts: PARTS });
}

/** Number of tokens of a stream, as a list. */
export const lengthOf = (graph: OnnxGraph, tokens: Value): Value =>
  graph.node("Shape", [tokens], { start: { int: 1 }, end: { int: 2 } });

/** The tokens from `start` to before `end`. */
export const between = (graph: OnnxGraph, tokens: Value, start: Value, end: Value): Value =>
  graph.node("Slice", [tokens, start, end, graph.ints([1])]);

/** The tokens after the first `count`. */
export const after = (graph: OnnxGraph, tokens: Value, count: Value): Value =>
  between(graph, tokens, count, graph.ints([2 ** 31 - 1]));
