import type { Modulation } from "../flux/blocks.js";
import { add, attention, linear, type Trace } from "../networks/layers.js";
import {
  geluTanh,
  headNorm,
  joined,
  lengthOf,
  modulated,
  modulation,
  parted,
  type Rotation,
  rotated,
  split,
} from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";

/** Sizes of a block of a Qwen-Image transformer. */
export interface QwenImageSizes {
  readonly width: number;
  readonly heads: number;
  readonly headSize: number;
  /** Numbers between the two layers of an MLP. */
  readonly mlp: number;
}

export const EPSILON = 1e-6;
/** Parts in which queries are processed if attention is written out. */
const PARTS = 16;

/** Shared by all blocks. */
export interface QwenImageContext {
  readonly network: Network;
  readonly sizes: QwenImageSizes;
  /** Rotation of both streams, the text's tokens first. */
  readonly rotation: Rotation;
  /** The time [B, width], by which the text changes. */
  readonly time: Value;
  /** The times by which the picture's tokens change. */
  readonly pictureTimes: PictureTimes;
  readonly trace: Trace;
}

/** One time for all tokens of a picture; or one for the first `count`, and one for the others, which are references. */
export type PictureTimes =
  | { readonly all: Value }
  | {
      /** [2 · B, width] */
      readonly both: Value;
      /** A list of one number. */
      readonly count: Value;
    };

/** The two streams of tokens. */
export interface QwenImageStreams {
  readonly txt: Value;
  readonly img: Value;
}

const LAYERS = {
  img: { query: "to_q", key: "to_k", value: "to_v", out: "to_out.0", norms: ["norm_q", "norm_k"] },
  txt: {
    query: "add_q_proj",
    key: "add_k_proj",
    value: "add_v_proj",
    out: "to_add_out",
    norms: ["norm_added_q", "norm_added_k"],
  },
} as const;

/** x + attention(norm(x)), then x + MLP(norm(x)) of each stream; both attend to both. */
export function qwenImageBlock(context: QwenImageContext, key: string, streams: QwenImageStreams): QwenImageStreams {
  const { network, sizes, rotation, trace } = context;
  const { graph } = network;
  const { width, heads, headSize, mlp } = sizes;
  const changes = { txt: changesOf(context, key, "txt"), img: changesOf(context, key, "img") };
  const normal = (name: keyof QwenImageStreams, x: Value, branch: 0 | 1): Value =>
    changes[name].each(x, (part, change) => modulated(graph, part, width, change[branch]!));
  const gated = (name: keyof QwenImageStreams, x: Value, branch: 0 | 1, more: Value): Value =>
    add(
      graph,
      x,
      changes[name].each(more, (part, change) => graph.node("Mul", [change[branch]!.gate, part])),
    );
  const headsOf = (name: keyof QwenImageStreams): readonly [Value, Value, Value] => {
    const { norms, ...layers } = LAYERS[name];
    const x = normal(name, streams[name], 0);
    const layer = (part: string): Value => {
      const out = linear(network, `${key}.attn.${part}`, x, [width, width]);
      trace(`${key}.attn.${part}`, out);
      return out;
    };
    const normed = (part: string, norm: string): Value => {
      const out = headNorm(network, `${key}.attn.${norm}.weight`, layer(part), [heads, headSize], EPSILON);
      trace(`${key}.attn.${norm}`, out);
      return out;
    };
    return [normed(layers.query, norms[0]), normed(layers.key, norms[1]), layer(layers.value)];
  };
  const [txt, img] = [headsOf("txt"), headsOf("img")];
  const both = (part: 0 | 1 | 2): Value => joined(graph, [txt[part], img[part]], 1);
  const turned = (x: Value): Value => rotated(graph, x, heads, rotation);
  const mixed = attention(graph, [turned(both(0)), turned(both(1)), both(2)], { heads, width, parts: PARTS });
  const finished = (name: keyof QwenImageStreams, attended: Value): Value => {
    const out = linear(network, `${key}.attn.${LAYERS[name].out}`, attended, [width, width]);
    const x = gated(name, streams[name], 0, out);
    const wide = linear(network, `${key}.${name}_mlp.net.0.proj`, normal(name, x, 1), [width, mlp]);
    const narrow = linear(network, `${key}.${name}_mlp.net.2`, geluTanh(graph, wide), [mlp, width]);
    const result = gated(name, x, 1, narrow);
    trace(`${key}.${name}`, result);
    return result;
  };
  const [ofText, ofPicture] = parted(graph, mixed, lengthOf(graph, streams.txt));
  return { txt: finished("txt", ofText), img: finished("img", ofPicture) };
}

/** Changes of attention and of the MLP. */
type Changes = readonly Modulation[];

/** Changes of a stream's tokens, of which some may have a time of their own. */
interface StreamChanges {
  /** `compute` of the tokens that have one time, all in their order. */
  each(tokens: Value, compute: (part: Value, changes: Changes) => Value): Value;
}

function changesOf(context: QwenImageContext, key: string, name: keyof QwenImageStreams): StreamChanges {
  const { network, sizes, time, pictureTimes, trace } = context;
  const { graph } = network;
  const { width } = sizes;
  const times = name === "txt" ? { all: time } : pictureTimes;
  const vector = "all" in times ? times.all : times.both;
  const all = modulation(network, `${key}.${name}_mod.1`, vector, [width, 6]);
  trace(`${key}.${name}_mod`, all);
  const changes = (rows: Value): Changes => {
    const parts = split(graph, rows, new Array<number>(6).fill(width));
    return [0, 3].map((at) => ({ shift: parts[at]!, scale: parts[at + 1]!, gate: parts[at + 2]! }));
  };
  if ("all" in times) {
    const own = changes(all);
    return { each: (tokens, compute) => compute(tokens, own) };
  }
  const { count } = times;
  const [first, others] = graph
    .nodeWithOutputs("Split", [all], 2, { axis: { int: 0 }, num_outputs: { int: 2 } })
    .map(changes);
  return {
    each(tokens, compute) {
      const [own, references] = parted(graph, tokens, count);
      return joined(graph, [compute(own, first!), compute(references, others!)], 1);
    },
  };
}
