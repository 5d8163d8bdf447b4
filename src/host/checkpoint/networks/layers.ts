import { LatentkitError } from "../../../base/errors.js";
import { MICROSOFT, type OnnxGraph, type Value } from "../onnx/graph.js";
import { type ProductOptions, product } from "../onnx/products.js";
import type { Network } from "../weights/network.js";
import { embeddingFrequencies } from "./sinusoids.js";

/** Sees the value after each part, by the part's key or its name in the reference. */
export type Trace = (name: string, value: Value) => void;

/** Bytes of a value while a network runs. */
export const FLOAT_BYTES = 4;

// Values: pictures are [B, C, h, w], tokens [B, L, C]; a layer reads its weights under its key, KEY.weight and KEY.bias.

const GROUPS = 32;

interface ConvOptions {
  /** Side of the square kernel. */
  readonly kernel: 1 | 3 | 14;
  readonly stride?: 1 | 2 | 14;
  /** Cells of zeros at top, left, bottom and right; half a kernel by default. */
  readonly pads?: readonly [number, number, number, number];
  readonly bias?: boolean;
}

/** A convolution from `inputs` to `outputs` channels. */
export function conv(
  network: Network,
  key: string,
  x: Value,
  [inputs, outputs]: readonly [number, number],
  { kernel, stride = 1, pads, bias = true }: ConvOptions,
): Value {
  const { graph } = network;
  const margin = (kernel - 1) / 2;
  const weight = network.weight(`${key}.weight`, [outputs, inputs, kernel, kernel], x);
  const missing = graph.target.convChannels === "fours" && inputs > 4 ? -inputs & 3 : 0;
  const inFours = (value: Value): Value =>
    missing === 0 ? value : graph.node("Pad", [value, graph.ints([0, 0, 0, 0, 0, missing, 0, 0])]);
  const values = [inFours(x), inFours(weight), ...(bias ? [network.weight(`${key}.bias`, [outputs])] : [])];
  return graph.node("Conv", values, {
    kernel_shape: { ints: [kernel, kernel] },
    strides: { ints: [stride, stride] },
    pads: { ints: pads ?? [margin, margin, margin, margin] },
  });
}

interface LinearOptions extends ProductOptions {
  readonly bias?: boolean;
  /** A 1x1 convolution in the file, used on tokens. */
  readonly asConv?: boolean;
}

/** x · Wᵀ + b on the last axis, from `inputs` to `outputs` numbers. */
export function linear(
  network: Network,
  key: string,
  x: Value,
  [inputs, outputs]: readonly [number, number],
  { bias = true, asConv = false, few }: LinearOptions = {},
): Value {
  const { graph } = network;
  const quantised = asConv ? undefined : network.quantisedProduct(`${key}.weight`, [outputs, inputs], x);
  const whole = (): Value =>
    asConv
      ? reshape(graph, network.weight(`${key}.weight`, [outputs, inputs, 1, 1], x), [outputs, inputs])
      : network.weight(`${key}.weight`, [outputs, inputs], x);
  const sums = quantised ?? product(graph, x, whole(), [inputs, outputs], { few });
  return bias ? add(graph, sums, network.weight(`${key}.bias`, [outputs])) : sums;
}

/**
 * Group normalisation of a picture in 32 groups. There is no kernel of that name on the CPU: instance normalisation of
 * [B, 32, …] does the same. Throws model.invalid for channels that are not a multiple of 32.
 */
export function groupNorm(network: Network, key: string, x: Value, channels: number, epsilon: number): Value {
  const { graph } = network;
  // other numbers would be cut across channels, unnoticed
  if (channels % GROUPS !== 0)
    throw new LatentkitError(
      "model.invalid",
      `${key}: expected a multiple of ${GROUPS} channels, received ${channels}.`,
    );
  const [ones, zeros] = [1, 0].map((value) => graph.floats(new Array(GROUPS).fill(value), [GROUPS]));
  const groups = reshape(graph, x, [0, GROUPS, -1]);
  // centred first: the operator computes x · a - mean · a, which loses the small differences of a nearly flat picture
  const centred = graph.node("Sub", [groups, graph.node("ReduceMean", [groups, graph.ints([2])])]);
  const normal = graph.node("InstanceNormalization", [centred, ones, zeros], { epsilon: { float: epsilon } });
  const picture = graph.node("Reshape", [normal, graph.node("Shape", [x])]);
  const [weight, bias] = ["weight", "bias"].map((name) =>
    reshape(graph, network.weight(`${key}.${name}`, [channels]), [channels, 1, 1]),
  );
  return add(graph, graph.node("Mul", [picture, weight]), bias!);
}

/** Layer normalisation of the last axis. */
export const layerNorm = (network: Network, key: string, x: Value, size: number, epsilon = 1e-5): Value =>
  network.graph.node(
    "LayerNormalization",
    [x, network.weight(`${key}.weight`, [size]), network.weight(`${key}.bias`, [size])],
    { axis: { int: -1 }, epsilon: { float: epsilon } },
  );

/** Added to the score of a token that is not attended to: the lowest float32. */
export const MASKED = -3.4028234663852886e38;

/** Scores [L, L] to add: a token attends to itself and to those before it, but only to the first `count`. */
export function causalMask(length: number, count = length): Float32Array {
  const scores = new Float32Array(length * length);
  for (let row = 0; row < length; row++)
    scores.fill(MASKED, row * length + Math.min(row + 1, count), (row + 1) * length);
  return scores;
}

interface AttentionOptions {
  readonly heads: number;
  /** C, which the heads share. */
  readonly width: number;
  /** [1, 1 or heads, L, S], added to the scores. */
  readonly mask?: Value;
  /** Factor of the scores before the mask; 1/sqrt(C / heads) by default. */
  readonly scale?: number;
  /** Parts in which queries are taken if attention is written out, for that has B · heads · L / parts · S scores at a time. */
  readonly parts?: number;
}

/** Attention of queries [B, L, C] on keys and values [B, S, C]. */
export function attention(
  graph: OnnxGraph,
  [query, key, value]: readonly [Value, Value, Value],
  { heads, width, mask, scale, parts = 1 }: AttentionOptions,
): Value {
  const size = width / heads;
  if (graph.target.attention === "fused" && size <= graph.target.largestHead) {
    const inputs = mask === undefined ? [query, key, value] : [query, key, value, undefined, undefined, mask];
    const factor = scale === undefined ? undefined : { scale: { float: scale } };
    return graph.node("MultiHeadAttention", inputs, { num_heads: { int: heads }, ...factor }, MICROSOFT);
  }
  const byHead = (x: Value, perm: readonly number[]): Value =>
    transpose(graph, reshape(graph, x, [0, 0, heads, size]), perm);
  // queries rather than scores, which are more
  const scaled = scale === 1 ? query : graph.node("Mul", [query, graph.floats([scale ?? 1 / Math.sqrt(size)], [])]);
  const [keys, values] = [byHead(key, [0, 2, 3, 1]), byHead(value, [0, 2, 1, 3])];
  const attended = inParts(graph, byHead(scaled, [0, 2, 1, 3]), parts, (queries) => {
    const product = graph.node("MatMul", [queries, keys]);
    const scores = mask === undefined ? product : add(graph, product, mask);
    return graph.node("MatMul", [graph.node("Softmax", [scores], { axis: { int: -1 } }), values]);
  });
  return reshape(graph, transpose(graph, attended, [0, 2, 1, 3]), [0, 0, width]);
}

/** `compute` of x [B, H, L, d], some rows at a time; L may be any number. */
function inParts(graph: OnnxGraph, x: Value, parts: number, compute: (rows: Value) => Value): Value {
  if (parts === 1) return compute(x);
  const joined = (values: readonly Value[], axis: number): Value =>
    graph.node("Concat", values, { axis: { int: axis } });
  const sides = (start: number, end: number): Value =>
    graph.node("Shape", [x], { start: { int: start }, end: { int: end } });
  const length = sides(2, 3);
  const missing = graph.node("Mod", [graph.node("Sub", [graph.ints([0]), length]), graph.ints([parts])]);
  const padded = graph.node("Pad", [x, joined([graph.ints([0, 0, 0, 0, 0, 0]), missing, graph.ints([0])], 0)]);
  const divided = graph.node("Reshape", [padded, joined([sides(0, 2), graph.ints([parts, -1]), sides(3, 4)], 0)]);
  // not Split: its program has a buffer for each part, and a GPU allows few
  const computed = Array.from({ length: parts }, (_, index) =>
    compute(graph.node("Gather", [divided, graph.ints([index], [])], { axis: { int: 2 } })),
  );
  return graph.node("Slice", [joined(computed, 2), graph.ints([0]), length, graph.ints([2])]);
}

export const add = (graph: OnnxGraph, a: Value, b: Value): Value => graph.node("Add", [a, b]);

/** x · sigmoid(x). */
export const silu = (graph: OnnxGraph, x: Value): Value => graph.node("Mul", [x, graph.node("Sigmoid", [x])]);

/** Gelu in its exact form, with erf. */
export const gelu = (graph: OnnxGraph, x: Value): Value => graph.node("Gelu", [x], {}, MICROSOFT);

/** x · sigmoid(1.702 x). */
export const quickGelu = (graph: OnnxGraph, x: Value): Value =>
  graph.node("QuickGelu", [x], { alpha: { float: 1.702 } }, MICROSOFT);

const transpose = (graph: OnnxGraph, x: Value, perm: readonly number[]): Value =>
  graph.node("Transpose", [x], { perm: { ints: perm } });

/** 0 keeps a side, -1 takes the rest. */
export const reshape = (graph: OnnxGraph, x: Value, shape: readonly number[]): Value =>
  graph.node("Reshape", [x, graph.ints(shape)]);

/** A picture's cells in row-major order as tokens. */
export const tokensOf = (graph: OnnxGraph, picture: Value): Value =>
  transpose(graph, reshape(graph, picture, [0, 0, -1]), [0, 2, 1]);

/** Tokens as a picture of the same size as `like`, whose channels may be others than theirs. */
export function toPicture(graph: OnnxGraph, tokens: Value, channels: number, like: Value): Value {
  const cells = transpose(graph, tokens, [0, 2, 1]);
  const start = graph.ints([0, channels]);
  const shape = graph.node("Concat", [start, graph.node("Shape", [like], { start: { int: 2 } })], { axis: { int: 0 } });
  return graph.node("Reshape", [cells, shape]);
}

const NEAREST = {
  mode: { text: "nearest" },
  coordinate_transformation_mode: { text: "asymmetric" },
  nearest_mode: { text: "floor" },
};

/** A picture at twice its sides, each cell four times. */
export const doubled = (graph: OnnxGraph, x: Value): Value =>
  graph.node("Resize", [x, undefined, graph.floats([1, 1, 2, 2], [4])], NEAREST);

/**
 * Cells of 2 x 2 of a picture [B, C, h, w] of even sides, as [B, 4C, h / 2, w / 2]: their row first, then their column, then
 * their channel.
 */
export function cornersOf(graph: OnnxGraph, x: Value): Value {
  const [axes, steps, end] = [graph.ints([2, 3]), graph.ints([2, 2]), graph.ints([2 ** 31 - 1, 2 ** 31 - 1])];
  const corners = [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ].map((corner) => graph.node("Slice", [x, graph.ints(corner), end, axes, steps]));
  return graph.node("Concat", corners, { axis: { int: 1 } });
}

/** A picture at the sides of another one, nearest cell. */
export function resizedAs(graph: OnnxGraph, x: Value, like: Value): Value {
  const start = graph.node("Shape", [x], { end: { int: 2 } });
  const end = graph.node("Shape", [like], { start: { int: 2 } });
  const shape = graph.node("Concat", [start, end], { axis: { int: 0 } });
  return graph.node("Resize", [x, undefined, undefined, shape], NEAREST);
}

/**
 * Embedding [B, size] of timesteps [B]: cosines of t · 10000^(-i / half), then the sines. Source: `timestep_embedding` of
 * guided-diffusion.
 */
export function timestepEmbedding(graph: OnnxGraph, timestep: Value, size: number): Value {
  const frequencies = embeddingFrequencies(size / 2);
  const column = graph.node("Unsqueeze", [timestep, graph.ints([1])]);
  const angles = graph.node("Mul", [column, graph.floats(frequencies, [1, frequencies.length])]);
  const parts = ["Cos", "Sin"].map((op) => graph.node(op, [angles]));
  return graph.node("Concat", parts, { axis: { int: 1 } });
}

/** Images [B, H, W, C] as planes [B, C, H, W]. */
export const planesOf = (graph: OnnxGraph, images: Value): Value => transpose(graph, images, [0, 3, 1, 2]);

/** Planes [B, C, H, W] as images [B, H, W, C]. */
export const imagesOf = (graph: OnnxGraph, planes: Value): Value => transpose(graph, planes, [0, 2, 3, 1]);
