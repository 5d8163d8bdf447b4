import { MICROSOFT, type OnnxGraph, type Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { add, attention, linear, reshape, silu } from "./layers.js";

// Layers of the transformers after Stable Diffusion's, on tokens [B, L, C].

/** x / sqrt(mean(x²) + epsilon) · weight on the last axis; `key` is the weight's own. */
export function rmsNorm(network: Network, key: string, x: Value, size: number, epsilon: number): Value {
  const attributes = { axis: { int: -1 }, epsilon: { float: epsilon }, stash_type: { int: 1 } };
  return network.graph.node("SimplifiedLayerNormalization", [x, network.weight(key, [size])], attributes);
}

/** rmsNorm of each head of [B, L, heads · size], with one weight of `size` for all. */
export function headNorm(
  network: Network,
  key: string,
  x: Value,
  [heads, size]: readonly [number, number],
  epsilon: number,
): Value {
  const { graph } = network;
  const normal = rmsNorm(network, key, reshape(graph, x, [0, 0, heads, size]), size, epsilon);
  return reshape(graph, normal, [0, 0, heads * size]);
}

/** Cosines and sines [L, size / 2] of the angles by which rotary turns the pairs of a head at each of L positions. */
export interface Rotation {
  readonly cos: Value;
  readonly sin: Value;
  /** Pairs of neighbours, or of a number of the first half and one of the second. */
  readonly pairs: "neighbours" | "halves";
}

/** Declares the inputs `NAME_cos` and `NAME_sin` of a rotation. */
export function rotationInputs(
  graph: OnnxGraph,
  name: string,
  length: string,
  size: number,
  pairs: Rotation["pairs"],
): Rotation {
  const [cos, sin] = ["cos", "sin"].map((part) => graph.input(`${name}_${part}`, "float", [length, size / 2]));
  return { cos: cos!, sin: sin!, pairs };
}

/** Turns the heads of [B, L, heads · size] by their positions: RoPE. */
export function rotated(graph: OnnxGraph, x: Value, heads: number, { cos, sin, pairs }: Rotation): Value {
  const attributes = { interleaved: { int: pairs === "neighbours" ? 1 : 0 }, num_heads: { int: heads } };
  // the position of the first token: the tables begin there
  return graph.node("RotaryEmbedding", [x, graph.ints([0]), cos, sin], attributes, MICROSOFT);
}

/** w2(silu(w1 x) · w3 x): keys of w1, w2 and w3, widths outside and inside. */
export function swiGlu(
  network: Network,
  [gate, down, up]: readonly [string, string, string],
  x: Value,
  [width, hidden]: readonly [number, number],
  bias = false,
): Value {
  const { graph } = network;
  const wide = (key: string): Value => linear(network, key, x, [width, hidden], { bias });
  const product = graph.node("Mul", [silu(graph, wide(gate)), wide(up)]);
  return linear(network, down, product, [hidden, width], { bias });
}

interface GroupedOptions {
  readonly heads: number;
  /** Heads of keys and values, each of which serves heads / groups queries. */
  readonly groups: number;
  readonly size: number;
  /** As in attention. */
  readonly mask?: Value;
  readonly parts?: number;
}

/** Attention of queries [B, L, heads · size] on keys and values [B, S, groups · size]. */
export function groupedAttention(
  graph: OnnxGraph,
  [query, key, value]: readonly [Value, Value, Value],
  { heads, groups, size, mask, parts }: GroupedOptions,
): Value {
  const repeated = (x: Value): Value => {
    if (heads === groups) return x;
    const each = reshape(graph, x, [0, 0, groups, 1, size]);
    const all = graph.node("Expand", [each, graph.ints([1, 1, 1, heads / groups, 1])]);
    return reshape(graph, all, [0, 0, heads * size]);
  };
  return attention(graph, [query, repeated(key), repeated(value)], { heads, width: heads * size, mask, parts });
}

/** x · (1 + scale) for one scale [B, C] of each item, or [B, 1, C]. */
export const scaled = (graph: OnnxGraph, x: Value, scale: Value): Value =>
  graph.node("Mul", [x, add(graph, scale, graph.floats([1], []))]);

/** Gelu in its approximate form, with tanh. */
export const geluTanh = (graph: OnnxGraph, x: Value): Value => graph.node("FastGelu", [x], {}, MICROSOFT);

/** (x - mean) / sqrt(variance + epsilon) on the last axis of `size` numbers: a layer norm without weights. */
export function plainNorm(graph: OnnxGraph, x: Value, size: number, epsilon: number): Value {
  const [ones, zeros] = [1, 0].map((value) => graph.floats(new Array(size).fill(value), [size]));
  return graph.node("LayerNormalization", [x, ones, zeros], { axis: { int: -1 }, epsilon: { float: epsilon } });
}

const MODULATED_EPSILON = 1e-6;

/** (1 + scale) norm(x) + shift: a layer norm without weights, and changes [B, 1, width]. */
export const modulated = (
  graph: OnnxGraph,
  x: Value,
  width: number,
  { shift, scale }: { readonly shift: Value; readonly scale: Value },
): Value => add(graph, scaled(graph, plainNorm(graph, x, width, MODULATED_EPSILON), scale), shift);

/** x + gate · change. */
export const gated = (graph: OnnxGraph, x: Value, gate: Value, change: Value): Value =>
  add(graph, x, graph.node("Mul", [gate, change]));

/** Number of tokens [B, L, C], as a list. */
export const lengthOf = (graph: OnnxGraph, tokens: Value): Value =>
  graph.node("Shape", [tokens], { start: { int: 1 }, end: { int: 2 } });

/** The first tokens of two joined sequences, of which those have that length, and the others. */
export function parted(graph: OnnxGraph, tokens: Value, length: Value): readonly [Value, Value] {
  const slice = (start: Value, end: Value): Value => graph.node("Slice", [tokens, start, end, graph.ints([1])]);
  return [slice(graph.ints([0]), length), slice(length, graph.ints([2 ** 31 - 1]))];
}

/** Parts of the last axis, of these sizes. */
export const split = (graph: OnnxGraph, x: Value, sizes: readonly number[]): Value[] =>
  graph.nodeWithOutputs("Split", [x, graph.ints(sizes)], sizes.length, { axis: { int: -1 } });

/** One after the other on an axis. */
export const joined = (graph: OnnxGraph, values: readonly Value[], axis: number): Value =>
  graph.node("Concat", values, { axis: { int: axis } });

/** `count` changes [B, 1, count · width] of tokens, which a layer makes of a vector [B, width]. */
export function modulation(
  network: Network,
  key: string,
  vector: Value,
  [width, count]: readonly [number, number],
  bias = true,
): Value {
  const { graph } = network;
  const all = linear(network, key, silu(graph, vector), [width, count * width], { bias });
  return graph.node("Unsqueeze", [all, graph.ints([1])]);
}
