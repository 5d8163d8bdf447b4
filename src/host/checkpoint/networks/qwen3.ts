import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { add, FLOAT_BYTES, linear } from "./layers.js";
import {
  groupedAttention,
  headNorm,
  type Rotation,
  rmsNorm,
  rotated,
  rotationInputs,
  swiGlu,
} from "./transformer-layers.js";

/** Sizes of a Qwen3 language model, of which images take the state before its last layer. */
export interface Qwen3Config {
  readonly hidden: number;
  /** Layers of the file; the last one is not run. */
  readonly layers: number;
  readonly heads: number;
  /** Heads of keys and values. */
  readonly groups: number;
  readonly headSize: number;
  readonly mlp: number;
  readonly vocabulary: number;
}

/** Bytes of a run beside the weights, for each value of an input: those of a token in an MLP, and of scores. */
export const qwen3Work = ({ hidden, mlp, heads }: Qwen3Config): { readonly tokens: number; readonly mask: number } => ({
  tokens: FLOAT_BYTES * (3 * mlp + 8 * hidden),
  mask: FLOAT_BYTES * 3 * heads,
});

/** Takes inner values, by the names of the reference's modules. */
type Trace = (name: string, value: Value) => void;

const EPSILON = 1e-6;
/** Parts in which queries are taken where attention is written out. */
const PARTS = 1;

/**
 * Writes a Qwen3 text encoder. Inputs: `tokens` int64 [B, S]; `mask` [1, 1, S, S], added to the scores: the lowest float for
 * tokens that come later; `text_cos` and `text_sin` [S, headSize / 2]. Output: `cond` [B, S, hidden], the state before the last
 * layer, not normalised. Throws model.invalid for weights that are absent or have other shapes.
 */
export function buildQwen3(network: Network, config: Qwen3Config, trace: Trace = () => {}): void {
  const { graph } = network;
  const { hidden, layers, headSize, vocabulary } = config;
  const tokens = graph.input("tokens", "int64", ["B", "S"]);
  const mask = graph.input("mask", "float", [1, 1, "S", "S"]);
  const rotation = rotationInputs(graph, "text", "S", headSize, "halves");
  let x = network.rows("model.embed_tokens.weight", [vocabulary, hidden], tokens);
  for (let index = 0; index < layers - 1; index++) {
    x = layer(network, `model.layers.${index}`, x, config, rotation, mask);
    trace(`layers.${index}`, x);
  }
  graph.output(x, "cond", "float", ["B", "S", hidden]);
}

/** x + attention(norm(x)), then x + MLP(norm(x)). */
function layer(network: Network, key: string, x: Value, config: Qwen3Config, rotation: Rotation, mask: Value): Value {
  const { graph } = network;
  const { hidden, heads, groups, headSize: size, mlp } = config;
  const norm = (name: string, value: Value): Value => rmsNorm(network, `${key}.${name}.weight`, value, hidden, EPSILON);
  const normal = norm("input_layernorm", x);
  const part = (name: string, count: number): Value =>
    linear(network, `${key}.self_attn.${name}_proj`, normal, [hidden, count * size], { bias: false });
  const turned = (name: "q" | "k", count: number): Value => {
    const each = headNorm(network, `${key}.self_attn.${name}_norm.weight`, part(name, count), [count, size], EPSILON);
    return rotated(graph, each, count, rotation);
  };
  const values = [turned("q", heads), turned("k", groups), part("v", groups)] as const;
  const mixed = groupedAttention(graph, values, { heads, groups, size, mask, parts: PARTS });
  const attended = linear(network, `${key}.self_attn.o_proj`, mixed, [heads * size, hidden], { bias: false });
  const after = add(graph, x, attended);
  const keys = ["gate", "down", "up"].map((name) => `${key}.mlp.${name}_proj`) as [string, string, string];
  return add(graph, after, swiGlu(network, keys, norm("post_attention_layernorm", after), [hidden, mlp]));
}
