import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { add, attention, linear, linearOfFew, silu, timestepEmbedding, tokensOf } from "./layers.js";
import { headNorm, type Rotation, rmsNorm, rotated, rotationInputs, scaled, swiGlu } from "./transformer-layers.js";

/** Sizes of a Z-Image transformer. */
export interface ZImageConfig {
  readonly channels: number;
  readonly width: number;
  readonly heads: number;
  readonly headSize: number;
  /** Numbers of a caption's token. */
  readonly captionWidth: number;
  readonly layers: number;
  readonly noiseRefiners: number;
  readonly contextRefiners: number;
  readonly mlp: number;
  /** Numbers of the embedded time, and of the layer before. */
  readonly timeWidth: number;
  readonly timeHidden: number;
  /** Names of its keys: the original code's or diffusers'. */
  readonly layout: "original" | "diffusers";
}

/** Takes inner values, by the names of the reference's modules. */
export type Trace = (name: string, value: Value) => void;

const PATCH = 2;
/** Tokens of each sequence are a multiple of this. */
export const PADDING = 32;
const NORM_EPSILON = 1e-5;
/** torch's default, which the reference takes for queries and keys. */
const HEAD_EPSILON = 2 ** -23;
const FINAL_EPSILON = 1e-6;
/** Numbers of the embedding of a time. */
const EMBEDDING = 256;
/** Parts in which queries are taken where attention is written out. */
const PARTS = 8;

const KEYS = {
  original: { image: "x_embedder", final: "final_layer", out: "attention.out", norms: ["q_norm", "k_norm"] },
  diffusers: {
    image: "all_x_embedder.2-1",
    final: "all_final_layer.2-1",
    out: "attention.to_out.0",
    norms: ["norm_q", "norm_k"],
  },
} as const;

/**
 * Writes a Z-Image transformer. Inputs: x [B, channels, h, w] of even sides, in the latent format; timestep [B], 1000 ·
 * (1 - sigma); context [B, S, captionWidth]; and the rotations of both padded sequences, `caption_cos`, `caption_sin`,
 * `image_cos` and `image_sin` [L, headSize / 2]. Output: out [B, channels, h, w], the velocity. Throws model.invalid for
 * weights that are absent or have other shapes. Source: Lumina 2 and Z-Image, by the facts of their files.
 */
export function buildZImage(network: Network, config: ZImageConfig, trace: Trace = () => {}): void {
  const { graph } = network;
  const { channels, width, headSize, captionWidth, layout } = config;
  const keys = KEYS[layout];
  const x = graph.input("x", "float", ["B", channels, "h", "w"]);
  const time = timeOf(network, config, graph.input("timestep", "float", ["B"]));
  trace("t_embedder", time);
  const captions = graph.input("context", "float", ["B", "S", captionWidth]);
  const normal = rmsNorm(network, "cap_embedder.0.weight", captions, captionWidth, NORM_EPSILON);
  const embedded = linear(network, "cap_embedder.1", normal, [captionWidth, width]);
  trace("cap_embedder", embedded);
  const pixels = PATCH * PATCH * channels;
  const patches = patchesOf(graph, x);
  const cells = linear(network, keys.image, tokensOf(graph, patches), [pixels, width]);
  trace("x_embedder", cells);
  const rotation = (name: string, length: string) => rotationInputs(graph, name, length, headSize, "neighbours");
  const ofCaption = rotation("caption", "captions");
  const ofImage = rotation("image", "cells");
  const refined = (name: string, count: number, tokens: Value, turn: Rotation, own?: Value): Value => {
    let value = tokens;
    for (let index = 0; index < count; index++) {
      value = block(network, `${name}.${index}`, value, config, turn, own, trace);
      trace(`${name}.${index}`, value);
    }
    return value;
  };
  const caption = refined(
    "context_refiner",
    config.contextRefiners,
    padded(network, "cap_pad_token", embedded, width),
    ofCaption,
  );
  const image = refined(
    "noise_refiner",
    config.noiseRefiners,
    padded(network, "x_pad_token", cells, width),
    ofImage,
    time,
  );
  const both = (first: Value, second: Value, axis: number): Value =>
    graph.node("Concat", [first, second], { axis: { int: axis } });
  const joint: Rotation = {
    cos: both(ofCaption.cos, ofImage.cos, 0),
    sin: both(ofCaption.sin, ofImage.sin, 0),
    pairs: "neighbours",
  };
  const mixed = refined("layers", config.layers, both(caption, image, 1), joint, time);
  const scale = linearOfFew(network, `${keys.final}.adaLN_modulation.1`, silu(graph, time), 2, [
    config.timeWidth,
    width,
  ]);
  const [ones, zeros] = [1, 0].map((value) => graph.floats(new Array(width).fill(value), [width]));
  const attributes = { axis: { int: -1 }, epsilon: { float: FINAL_EPSILON } };
  const last = graph.node("LayerNormalization", [mixed, ones, zeros], attributes);
  const all = linear(network, `${keys.final}.linear`, scaled(graph, last, rows(graph, scale)), [width, pixels]);
  trace("final_layer", all);
  const start = lengthOf(graph, caption);
  const own = graph.node("Slice", [all, start, add(graph, start, lengthOf(graph, cells)), graph.ints([1])]);
  const velocity = graph.node("Neg", [pictureOf(graph, own, patches)]);
  graph.output(velocity, "out", "float", ["B", channels, "h", "w"]);
}

/** The embedded time [B, timeWidth]. */
function timeOf(network: Network, { timeHidden, timeWidth }: ZImageConfig, timestep: Value): Value {
  const { graph } = network;
  const embedding = timestepEmbedding(graph, timestep, EMBEDDING);
  const hidden = linearOfFew(network, "t_embedder.mlp.0", embedding, 2, [EMBEDDING, timeHidden]);
  return linearOfFew(network, "t_embedder.mlp.2", silu(graph, hidden), 2, [timeHidden, timeWidth]);
}

/** x + attention, then x + MLP, each normalised before and after; with `time` scaled and gated by it. */
function block(
  network: Network,
  key: string,
  x: Value,
  config: ZImageConfig,
  rotation: Rotation,
  time: Value | undefined,
  trace: Trace,
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
  const all = linearOfFew(network, `${key}.adaLN_modulation.0`, time, 2, [timeWidth, 4 * width]);
  trace(`${key}.adaLN_modulation`, all);
  const sizes = graph.ints([width, width, width, width]);
  const parts = graph.nodeWithOutputs("Split", [rows(graph, all), sizes], 4, { axis: { int: -1 } });
  return [0, 2].map((index) => ({ scale: parts[index]!, gate: parts[index + 1]! }));
}

function selfAttention(
  network: Network,
  key: string,
  x: Value,
  { width, heads, headSize, layout }: ZImageConfig,
  rotation: Rotation,
  trace: Trace,
): Value {
  const { graph } = network;
  const { out, norms } = KEYS[layout];
  const [query, keys, values] = queryKeyValue(network, `${key}attention`, x, width, layout, trace);
  const turned = (value: Value, name: string): Value => {
    const normal = headNorm(network, `${key}attention.${name}.weight`, value, [heads, headSize], HEAD_EPSILON);
    return rotated(graph, normal, heads, rotation);
  };
  const mixed = attention(graph, [turned(query, norms[0]), turned(keys, norms[1]), values], {
    heads,
    width,
    parts: PARTS,
  });
  const attended = linear(network, `${key}${out}`, mixed, [width, width], { bias: false });
  trace(`${key}attention`, attended);
  return attended;
}

function queryKeyValue(
  network: Network,
  key: string,
  x: Value,
  width: number,
  layout: ZImageConfig["layout"],
  trace: Trace,
): readonly [Value, Value, Value] {
  const { graph } = network;
  if (layout === "diffusers") {
    const part = (name: string): Value => linear(network, `${key}.to_${name}`, x, [width, width], { bias: false });
    return [part("q"), part("k"), part("v")];
  }
  const all = linear(network, `${key}.qkv`, x, [width, 3 * width], { bias: false });
  trace(`${key}.qkv`, all);
  const sizes = graph.ints([width, width, width]);
  const [query, keys, values] = graph.nodeWithOutputs("Split", [all, sizes], 3, { axis: { int: -1 } });
  return [query!, keys!, values!];
}

/** Tokens [B, L, C] with a pad token after them, up to a multiple of 32. */
function padded(network: Network, key: string, tokens: Value, width: number): Value {
  const { graph } = network;
  const token = network.weight(key, [1, width]);
  const missing = graph.node("Mod", [
    graph.node("Sub", [graph.ints([0]), lengthOf(graph, tokens)]),
    graph.ints([PADDING]),
  ]);
  const batch = graph.node("Shape", [tokens], { start: { int: 0 }, end: { int: 1 } });
  const sides = graph.node("Concat", [batch, missing, graph.ints([width])], { axis: { int: 0 } });
  return graph.node("Concat", [tokens, graph.node("Expand", [token, sides])], { axis: { int: 1 } });
}

const lengthOf = (graph: OnnxGraph, tokens: Value): Value =>
  graph.node("Shape", [tokens], { start: { int: 1 }, end: { int: 2 } });

const rows = (graph: OnnxGraph, x: Value): Value => graph.node("Unsqueeze", [x, graph.ints([1])]);

/** Patches of 2 x 2 cells [B, 4C, h / 2, w / 2]; a patch has its row first, then its column, then its channel. */
function patchesOf(graph: OnnxGraph, x: Value): Value {
  const [axes, steps, end] = [graph.ints([2, 3]), graph.ints([PATCH, PATCH]), graph.ints([2 ** 31 - 1, 2 ** 31 - 1])];
  const corners = [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ].map((corner) => graph.node("Slice", [x, graph.ints(corner), end, axes, steps]));
  return graph.node("Concat", corners, { axis: { int: 1 } });
}

/** Tokens of patches as a picture; `like` are the patches before. */
function pictureOf(graph: OnnxGraph, tokens: Value, like: Value): Value {
  const channelsFirst = graph.node("Transpose", [tokens], { perm: { ints: [0, 2, 1] } });
  const picture = graph.node("Reshape", [channelsFirst, graph.node("Shape", [like])]);
  return graph.node("DepthToSpace", [picture], { blocksize: { int: PATCH }, mode: { text: "DCR" } });
}
