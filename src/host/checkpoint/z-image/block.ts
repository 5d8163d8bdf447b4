import { add, attention, linear, type Trace } from "../networks/layers.js";
import { headNorm, type Rotation, rmsNorm, rotated, scaled, split, swiGlu } from "../networks/transformer-layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";

/** Sizes of a block of a Z-Image transformer. */
export interface ZImageBlockConfig {
  readonly width: number;
  readonly heads: number;
  readonly headSize: number;
  readonly mlp: number;
  /** Numbers of the embedded time. */
  readonly timeWidth: number;
}

export const NORM_EPSILON = 1e-5;
/** torch's default, which the reference takes for queries and keys. */
const HEAD_EPSILON = 2 ** -23;
/** Parts in which queries are processed if attention is written out. */
const PARTS = 8;

/** x + attention, then x + MLP, each normalised before and after; with `time` scaled and gated by it. */
export function zImageBlock(
  network: Network,
  key: string,
  x: Value,
  config: ZImageBlockConfig,
  rotation: Rotation,
  time: Value | undefined,
  trace: Trace = () => {},
): Value {
  const { graph } = network;
  const { width, mlp, timeWidth } = config;
  const norm = (name: string, value: Value): Value =>
    rmsNorm(network, `${key}.${name}.weight`, value, width, NORM_EPSILON);
  const changes = time === undefined ? undefined : modulation(network, key, time, [timeWidth, width], trace);
  const branch = (value: Value, index: 0 | 1, compute: (normal: Value) => Value): Value => {
    const [before, after] = (
      [
        ["attention_norm1", "attention_norm2"],
        ["ffn_norm1", "ffn_norm2"],
      ] as const
    )[index];
    const normal = norm(before, value);
    trace(`${key}.${before}`, normal);
    const { scale, gate } = changes?.[index] ?? {};
    const computed = compute(scale === undefined ? normal : scaled(graph, normal, scale));
    const out = norm(after, computed);
    trace(`${key}.${after}`, out);
    return add(graph, value, gate === undefined ? out : graph.node("Mul", [graph.node("Tanh", [gate]), out]));
  };
  const attended = branch(x, 0, (normal) => selfAttention(network, `${key}.`, normal, config, rotation, trace));
  return branch(attended, 1, (normal) => {
    const keys = ["w1", "w2", "w3"].map((name) => `${key}.feed_forward.${name}`);
    const out = swiGlu(network, keys as [string, string, string], normal, [width, mlp]);
    trace(`${key}.feed_forward`, out);
    return out;
  });
}

/** Scale and gate [B, 1, C] of attention and of the MLP. */
function modulation(
  network: Network,
  key: string,
  time: Value,
  [timeWidth, width]: readonly [number, number],
  trace: Trace,
): readonly { readonly scale: Value; readonly gate: Value }[] {
  const { graph } = network;
  const all = linear(network, `${key}.adaLN_modulation.0`, time, [timeWidth, 4 * width]);
  trace(`${key}.adaLN_modulation`, all);
  const parts = split(graph, rows(graph, all), [width, width, width, width]);
  return [0, 2].map((index) => ({ scale: parts[index]!, gate: parts[index + 1]! }));
}

function selfAttention(
  network: Network,
  key: string,
  x: Value,
  { width, heads, headSize }: ZImageBlockConfig,
  rotation: Rotation,
  trace: Trace,
): Value {
  const { graph } = network;
  const all = linear(network, `${key}attention.qkv`, x, [width, 3 * width], { bias: false });
  trace(`${key}attention.qkv`, all);
  const [query, keys, values] = split(graph, all, [width, width, width]) as [Value, Value, Value];
  const turned = (value: Value, name: string): Value => {
    const normal = headNorm(network, `${key}attention.${name}.weight`, value, [heads, headSize], HEAD_EPSILON);
    return rotated(graph, normal, heads, rotation);
  };
  const mixed = attention(graph, [turned(query, "q_norm"), turned(keys, "k_norm"), values], {
    heads,
    width,
    parts: PARTS,
  });
  const attended = linear(network, `${key}attention.out`, mixed, [width, width], { bias: false });
  trace(`${key}attention`, attended);
  return attended;
}

/** Each item's one row [B, 1, C]. */
export const rows = (graph: OnnxGraph, x: Value): Value => graph.node("Unsqueeze", [x, graph.ints([1])]);
