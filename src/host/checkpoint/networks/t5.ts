import { log } from "../../../native/elementary.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { add, attention, FLOAT_BYTES, linear } from "./layers.js";
import { geluTanh, rmsNorm } from "./transformer-layers.js";

/** Sizes of a T5 encoder. */
export interface T5Config {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly headSize: number;
  /** Numbers between the layers of a block's MLP. */
  readonly mlp: number;
  /** Rows of the token table. */
  readonly vocabulary: number;
}

/** Bytes of a run beside the weights, for each value of an input: those of a token in an MLP, and of scores. */
export const t5Work = ({ hidden, mlp, heads }: T5Config): { readonly tokens: number; readonly buckets: number } => ({
  tokens: FLOAT_BYTES * (3 * mlp + 8 * hidden),
  buckets: FLOAT_BYTES * 3 * heads,
});

/** Takes inner values, by the names of the reference's modules. */
type Trace = (name: string, value: Value) => void;

const EPSILON = 1e-6;
/** Buckets of distances, half of them for keys after the query. */
export const BUCKETS = 32;
const SIDE = BUCKETS / 2;
/** Distances up to this have a bucket each. */
const NEAR = SIDE / 2;
/** Distance from which all share the last bucket. */
const FAR = 128;

export const TOKEN_TABLE = "shared.weight";
export const BIAS_TABLE = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";

/**
 * Writes a T5 encoder. Inputs: `tokens` int64 [B, S]; `buckets` int64 [S, S], as t5Buckets lists them. Output: `cond` [B, S,
 * hidden], the normalised last state; padding takes part. Throws model.invalid for weights that are absent or have other
 * shapes.
 */
export function buildT5(network: Network, config: T5Config, trace: Trace = () => {}): void {
  const { graph } = network;
  const { hidden, layers, vocabulary } = config;
  const tokens = graph.input("tokens", "int64", ["B", "S"]);
  const bias = positionBias(network, config);
  trace("position_bias", bias);
  let x = network.rows(TOKEN_TABLE, [vocabulary, hidden], tokens);
  trace("embed", x);
  for (let index = 0; index < layers; index++) {
    x = block(network, `block.${index}`, x, config, bias, trace);
    trace(`block.${index}`, x);
  }
  const normal = rmsNorm(network, "encoder.final_layer_norm.weight", x, hidden, EPSILON);
  graph.output(normal, "cond", "float", ["B", "S", hidden]);
}

/** Scores [1, heads, S, S] that every block adds to its own. */
function positionBias(network: Network, { heads }: T5Config): Value {
  const { graph } = network;
  const buckets = graph.input("buckets", "int64", ["S", "S"]);
  const each = network.rows(BIAS_TABLE, [BUCKETS, heads], buckets);
  const byHead = graph.node("Transpose", [each], { perm: { ints: [2, 0, 1] } });
  return graph.node("Unsqueeze", [byHead, graph.ints([0])]);
}

/** x + attention(norm(x)), then x + MLP(norm(x)). */
function block(network: Network, name: string, x: Value, config: T5Config, bias: Value, trace: Trace): Value {
  const { graph } = network;
  const { hidden, heads, headSize, mlp } = config;
  const inner = heads * headSize;
  const norm = (layer: string, value: Value): Value => {
    const normal = rmsNorm(network, `encoder.${layer}.layer_norm.weight`, value, hidden, EPSILON);
    trace(`${layer}.layer_norm`, normal);
    return normal;
  };
  const project = (key: string, value: Value, sides: readonly [number, number]): Value =>
    linear(network, `encoder.${key}`, value, sides, { bias: false });
  const self = `${name}.layer.0.SelfAttention`;
  const before = norm(`${name}.layer.0`, x);
  const [query, key, value] = ["q", "k", "v"].map((part) => project(`${self}.${part}`, before, [hidden, inner]));
  const mixed = attention(graph, [query!, key!, value!], { heads, width: inner, mask: bias, scale: 1 });
  const attended = project(`${self}.o`, mixed, [inner, hidden]);
  trace(self, attended);
  const after = add(graph, x, attended);
  const dense = `${name}.layer.1.DenseReluDense`;
  const normal = norm(`${name}.layer.1`, after);
  const wide = (part: string): Value => project(`${dense}.${part}`, normal, [hidden, mlp]);
  const gated = graph.node("Mul", [geluTanh(graph, wide("wi_0")), wide("wi_1")]);
  const out = project(`${dense}.wo`, gated, [mlp, hidden]);
  trace(dense, out);
  return add(graph, after, out);
}

/** The bucket of a key at `distance` tokens after the query, before it where negative: 0 … 31. */
function t5Bucket(distance: number): number {
  const side = distance > 0 ? SIDE : 0;
  const far = Math.abs(distance);
  if (far < NEAR) return side + far;
  // in float32 at each step as in the source
  const share = Math.fround(Math.fround(log(far / NEAR)) / Math.fround(log(FAR / NEAR)));
  return side + Math.min(SIDE - 1, NEAR + Math.floor(Math.fround(share * (SIDE - NEAR))));
}

/** Buckets [S, S] of every key for every query, queries first. */
export function t5Buckets(length: number): number[] {
  const buckets = Array.from({ length: 2 * length }, (_, index) => t5Bucket(index - length));
  return Array.from({ length: length * length }, (_, index) => {
    const query = Math.floor(index / length);
    return buckets[(index % length) - query + length]!;
  });
}
