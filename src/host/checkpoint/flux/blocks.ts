import { attention, linear, silu, type Trace } from "../networks/layers.js";
import {
  gated,
  geluTanh,
  headNorm,
  joined,
  lengthOf,
  modulated,
  parted,
  type Rotation,
  rotated,
  split,
} from "../networks/transformer-layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { FLUX_KINDS, type StreamSizes } from "./config.js";

// Blocks of two streams of tokens, [B, S, width] of a text and [B, L, width] of a picture, which attend to each other.

/** How one branch of a block is changed: each [B, 1, width]. */
export interface Modulation {
  readonly shift: Value;
  readonly scale: Value;
  readonly gate: Value;
}

/** Shared by both kinds of blocks. */
export interface BlockContext {
  readonly network: Network;
  readonly sizes: StreamSizes;
  /** Rotation of both streams, the text's tokens first. */
  readonly rotation: Rotation;
  readonly trace: Trace;
}

export interface Streams<T> {
  readonly txt: T;
  readonly img: T;
}

const EPSILON = 1e-6;
/** Parts in which queries are processed if attention is written out. */
const PARTS = 16;

/** A block in which each stream has its own weights: changes for its attention, then for its MLP. */
export function doubleBlock(
  context: BlockContext,
  key: string,
  streams: Streams<Value>,
  changes: Streams<readonly [Modulation, Modulation]>,
): Streams<Value> {
  const { network, sizes, trace } = context;
  const { graph } = network;
  const { width, mlp } = sizes;
  const { bias } = FLUX_KINDS[sizes.kind];
  const layer = (name: string, x: Value, sides: readonly [number, number]): Value => {
    const out = linear(network, `${key}.${name}`, x, sides, { bias });
    trace(`${key}.${name}`, out);
    return out;
  };
  const heads = (name: "txt" | "img"): Heads => {
    const normal = modulated(graph, streams[name], width, changes[name][0]);
    const all = layer(`${name}_attn.qkv`, normal, [width, 3 * width]);
    return normalHeads(context, `${key}.${name}_attn.norm`, split(graph, all, [width, width, width]));
  };
  const [txt, img] = [heads("txt"), heads("img")];
  const both = (part: keyof Heads): Value => joined(graph, [txt[part], img[part]], 1);
  const mixed = jointAttention(context, { query: both("query"), key: both("key"), value: both("value") });
  const [ofText, ofPicture] = parted(graph, mixed, lengthOf(graph, streams.txt));
  const finished = (name: "txt" | "img", attended: Value): Value => {
    const [first, second] = changes[name];
    const x = gated(graph, streams[name], first.gate, layer(`${name}_attn.proj`, attended, [width, width]));
    const wide = layer(`${name}_mlp.0`, modulated(graph, x, width, second), [width, wideOf(sizes)]);
    const narrow = linear(network, `${key}.${name}_mlp.2`, active(graph, wide, sizes), [mlp, width], { bias });
    trace(`${key}.${name}_mlp`, narrow);
    const result = gated(graph, x, second.gate, narrow);
    trace(`${key}.${name}`, result);
    return result;
  };
  return {
    txt: finished("txt", ofText),
    img: finished("img", ofPicture),
  };
}

/** A block on the joint stream, the text's tokens first, whose attention and MLP stand side by side. */
export function singleBlock(context: BlockContext, key: string, x: Value, change: Modulation): Value {
  const { network, sizes, trace } = context;
  const { graph } = network;
  const { width, mlp } = sizes;
  const { bias } = FLUX_KINDS[sizes.kind];
  const sides = [width, width, width, wideOf(sizes)];
  const all = linear(network, `${key}.linear1`, modulated(graph, x, width, change), [width, 3 * width + sides[3]!], {
    bias,
  });
  trace(`${key}.linear1`, all);
  const [query, keys, value, wide] = split(graph, all, sides);
  const heads = normalHeads(context, `${key}.norm`, [query!, keys!, value!]);
  const mixed = joined(graph, [jointAttention(context, heads), active(graph, wide!, sizes)], 2);
  const narrow = linear(network, `${key}.linear2`, mixed, [width + mlp, width], { bias });
  const out = gated(graph, x, change.gate, narrow);
  trace(key, out);
  return out;
}

/** Numbers that the first layer of an MLP makes. */
const wideOf = ({ kind, mlp }: StreamSizes): number => (FLUX_KINDS[kind].mlp === "gated" ? 2 * mlp : mlp);

/** The numbers of an MLP between its layers. */
function active(graph: OnnxGraph, wide: Value, { kind, mlp }: StreamSizes): Value {
  if (FLUX_KINDS[kind].mlp === "gelu") return geluTanh(graph, wide);
  const [first, second] = split(graph, wide, [mlp, mlp]);
  return graph.node("Mul", [silu(graph, first!), second!]);
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
