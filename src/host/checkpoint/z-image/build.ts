import { add, cornersOf, FLOAT_BYTES, linear, silu, type Trace, tokensOf } from "../networks/layers.js";
import { TIME_EMBEDDING } from "../networks/sinusoids.js";
import { joined, plainNorm, type Rotation, rmsNorm, rotationInputs, scaled } from "../networks/transformer-layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { NORM_EPSILON, rows, type ZImageBlockConfig, zImageBlock } from "./block.js";
import { type ZImageControl, zImageControl } from "./control.js";

/** Sizes of a Z-Image transformer. */
export interface ZImageConfig extends ZImageBlockConfig {
  readonly channels: number;
  /** Numbers of a caption's token. */
  readonly captionWidth: number;
  readonly layers: number;
  readonly noiseRefiners: number;
  readonly contextRefiners: number;
  /** Numbers between the embedding of the time and the embedded time. */
  readonly timeHidden: number;
}

interface ZImageOptions {
  /** Control nets, whose inputs are `control_N` [B or 1, their channels, h, w] and `strength_N` [1]. */
  readonly controls?: readonly ZImageControl[];
  readonly trace?: Trace;
}

const PATCH = 2;
/** Tokens of each sequence are a multiple of this. */
export const PADDING = 32;
const FINAL_EPSILON = 1e-6;

/**
 * Writes a Z-Image transformer. Inputs: x [B, channels, h, w] of even sides, in the latent format; embedding [B, 256],
 * sinusoids of 1000 · (1 - sigma), which some GPUs compute roughly; context [B, S, captionWidth]; and the rotations of both padded sequences, `caption_cos`, `caption_sin`,
 * `image_cos` and `image_sin` [L, headSize / 2]. Output: out [B, channels, h, w], the velocity. Throws model.invalid for
 * weights that are absent or have other shapes. Source: Lumina 2 and Z-Image, by the facts of their files.
 */
export function buildZImage(
  network: Network,
  config: ZImageConfig,
  { controls = [], trace = () => {} }: ZImageOptions = {},
): void {
  const { graph } = network;
  const { channels, width, headSize, captionWidth } = config;
  const x = graph.input("x", "float", ["B", channels, "h", "w"]);
  const time = timeOf(network, config, graph.input("embedding", "float", ["B", TIME_EMBEDDING]));
  trace("t_embedder", time);
  const captions = graph.input("context", "float", ["B", "S", captionWidth]);
  const normal = rmsNorm(network, "cap_embedder.0.weight", captions, captionWidth, NORM_EPSILON);
  const embedded = linear(network, "cap_embedder.1", normal, [captionWidth, width]);
  trace("cap_embedder", embedded);
  const pixels = PATCH * PATCH * channels;
  const patches = cornersOf(graph, x);
  const cells = linear(network, "x_embedder", tokensOf(graph, patches), [pixels, width]);
  trace("x_embedder", cells);
  const rotation = (name: string, length: string) => rotationInputs(graph, name, length, headSize, "neighbours");
  const ofCaption = rotation("caption", "captions");
  const ofImage = rotation("image", "cells");
  const refined = (name: string, count: number, tokens: Value, turn: Rotation, after?: Refined): Value => {
    let value = tokens;
    for (let index = 0; index < count; index++) {
      value = zImageBlock(network, `${name}.${index}`, value, config, turn, after?.time, trace);
      trace(`${name}.${index}`, value);
      value = after?.guided(value, index) ?? value;
    }
    return value;
  };
  const caption = refined(
    "context_refiner",
    config.contextRefiners,
    padded(network, "cap_pad_token", embedded, width),
    ofCaption,
  );
  const [start, count] = [lengthOf(graph, caption), lengthOf(graph, cells)];
  const range = { start, end: add(graph, start, count) };
  const branches = controls.map((control, index) => {
    const input = graph.input(`control_${index}`, "float", ["controls", control.config.channels, "h", "w"]);
    const tokens = tokensOf(graph, cornersOf(graph, input));
    const strength = graph.input(`strength_${index}`, "float", [1]);
    const own = { cos: rowsUpTo(graph, ofImage.cos, count), sin: rowsUpTo(graph, ofImage.sin, count) };
    return zImageControl(control, { config, tokens, strength, time, rotation: { ...ofImage, ...own } });
  });
  const noisy = padded(network, "x_pad_token", cells, width);
  const image = refined("noise_refiner", config.noiseRefiners, noisy, ofImage, {
    time,
    guided: (value, index) =>
      branches.reduce(
        (sum, branch) =>
          addTokens(graph, sum, branch.besideRefiner(index, cells), { start: graph.ints([0]), end: count }),
        value,
      ),
  });
  const joint: Rotation = {
    cos: joined(graph, [ofCaption.cos, ofImage.cos], 0),
    sin: joined(graph, [ofCaption.sin, ofImage.sin], 0),
    pairs: "neighbours",
  };
  const entered = tokensUpTo(graph, image, count);
  const mixed = refined("layers", config.layers, joined(graph, [caption, image], 1), joint, {
    time,
    guided: (value, index) =>
      branches.reduce((sum, branch) => addTokens(graph, sum, branch.besideLayer(index, entered), range), value),
  });
  const scale = linear(network, "final_layer.adaLN_modulation.1", silu(graph, time), [config.timeWidth, width]);
  const last = plainNorm(graph, mixed, width, FINAL_EPSILON);
  const all = linear(network, "final_layer.linear", scaled(graph, last, rows(graph, scale)), [width, pixels]);
  trace("final_layer", all);
  const own = graph.node("Slice", [all, range.start, range.end, graph.ints([1])]);
  const velocity = graph.node("Neg", [pictureOf(graph, own, patches)]);
  graph.output(velocity, "out", "float", ["B", channels, "h", "w"]);
}

/** Bytes of a run beside the weights, for each value of x and of context: those of a token in the MLP of a block. */
export function zImageWork({ width, mlp, channels, captionWidth }: ZImageConfig): Readonly<Record<string, number>> {
  const ofToken = FLOAT_BYTES * 4 * (mlp + width);
  return { x: ofToken / (PATCH * PATCH * channels), context: ofToken / captionWidth };
}

/** Blocks that take the time, and their value with the additions of control nets. */
interface Refined {
  readonly time: Value;
  guided(value: Value, index: number): Value;
}

/** Adds to the tokens from `start` to `end` of a sequence [B, L, C]; nothing if there is nothing to add. */
function addTokens(
  graph: OnnxGraph,
  sequence: Value,
  more: Value | undefined,
  { start, end }: { readonly start: Value; readonly end: Value },
): Value {
  if (more === undefined) return sequence;
  const slice = (from: Value, to: Value): Value => graph.node("Slice", [sequence, from, to, graph.ints([1])]);
  const sum = add(graph, slice(start, end), more);
  const parts = [slice(graph.ints([0]), start), sum, slice(end, graph.ints([2 ** 31 - 1]))];
  return graph.node("Concat", parts, { axis: { int: 1 } });
}

const tokensUpTo = (graph: OnnxGraph, sequence: Value, end: Value): Value =>
  graph.node("Slice", [sequence, graph.ints([0]), end, graph.ints([1])]);

const rowsUpTo = (graph: OnnxGraph, table: Value, end: Value): Value =>
  graph.node("Slice", [table, graph.ints([0]), end, graph.ints([0])]);

/** The embedded time [B, timeWidth]. */
function timeOf(network: Network, { timeHidden, timeWidth }: ZImageConfig, embedding: Value): Value {
  const { graph } = network;
  const hidden = linear(network, "t_embedder.mlp.0", embedding, [TIME_EMBEDDING, timeHidden]);
  return linear(network, "t_embedder.mlp.2", silu(graph, hidden), [timeHidden, timeWidth]);
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

/** Tokens of patches as a picture; `like` are the patches before. */
function pictureOf(graph: OnnxGraph, tokens: Value, like: Value): Value {
  const channelsFirst = graph.node("Transpose", [tokens], { perm: { ints: [0, 2, 1] } });
  const picture = graph.node("Reshape", [channelsFirst, graph.node("Shape", [like])]);
  return graph.node("DepthToSpace", [picture], { blocksize: { int: PATCH }, mode: { text: "DCR" } });
}
