import { add, attention, causalMask, gelu, layerNorm, linear, quickGelu } from "../networks/layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import { product, transposed } from "../onnx/products.js";
import type { Network } from "../weights/network.js";

/** Sizes of a CLIP text encoder. */
export interface TextEncoderConfig {
  /** CLIP-L, OpenCLIP-H or OpenCLIP-bigG, whose trained sizes are not meant. */
  readonly name: "l" | "h" | "g";
  /** Names of its keys: Hugging Face's or OpenCLIP's. */
  readonly layout: "hf" | "openclip";
  readonly hidden: number;
  readonly layers: number;
  /** Layers that the file lacks after these. */
  readonly missing: number;
  readonly heads: number;
  /** Numbers between the two layers of a block's MLP. */
  readonly mlp: number;
  /** Rows of the token table. */
  readonly vocabulary: number;
  readonly positions: 77;
  readonly activation: "quick-gelu" | "gelu";
  /** Projection of the pooled row to `size` numbers: x · W, or x · Wᵀ if it is stored transposed. */
  readonly projection?: { readonly key: string; readonly transposed: boolean; readonly size: number };
}

export interface TextEncoderOptions {
  /** Layer of the context, from the end: -1 is the last. Beyond the first: the last, with the final norm. */
  readonly layer: number;
  /** Whether the context is normalised. */
  readonly finalNorm: boolean;
}

/** Id of the token that ends a text; the first of a row is the place of the pooled output. */
const END_TOKEN = 49407;

/** Keys of one block's layers and of the layers around the blocks. */
const KEYS = {
  hf: {
    tokens: "embeddings.token_embedding.weight",
    positions: "embeddings.position_embedding.weight",
    block: "encoder.layers",
    norms: ["layer_norm1", "layer_norm2"],
    out: "self_attn.out_proj",
    mlp: ["mlp.fc1", "mlp.fc2"],
    finalNorm: "final_layer_norm",
  },
  openclip: {
    tokens: "token_embedding.weight",
    positions: "positional_embedding",
    block: "transformer.resblocks",
    norms: ["ln_1", "ln_2"],
    out: "attn.out_proj",
    mlp: ["mlp.c_fc", "mlp.c_proj"],
    finalNorm: "ln_final",
  },
} as const;

/**
 * Writes a CLIP text encoder. Inputs: `tokens` int64 [B, 77], and `embeddings` [R, hidden], the rows of textual inversions,
 * which ids from `vocabulary` on stand for. Outputs: `cond` [B, 77, hidden], and `pooled` [B, hidden or the projection's
 * size], the last layer at the first end token, normalised and projected.
 */
export function buildTextEncoder(
  network: Network,
  config: TextEncoderConfig,
  { layer, finalNorm }: TextEncoderOptions,
): void {
  const { graph } = network;
  const { hidden, layers, missing, positions, projection } = config;
  const keys = KEYS[config.layout];
  const tokens = graph.input("tokens", "int64", ["batch", positions]);
  const isBeyondFirst = -layer > layers + missing;
  const last = isBeyondFirst ? layers - 1 : Math.min(layers + missing + layer, layers - 1);
  const mask = graph.floats(causalMask(positions), [1, 1, positions, positions]);
  let x = add(graph, embedded(network, config, tokens), network.weight(keys.positions, [positions, hidden]));
  let context = x;
  for (let index = 0; index < layers; index++) {
    x = clipBlock(network, config, "", index, x, mask);
    if (index === last) context = x;
  }
  const normal = layerNorm(network, keys.finalNorm, x, hidden);
  if (last === layers - 1 && (finalNorm || isBeyondFirst)) context = normal;
  else if (finalNorm) context = layerNorm(network, keys.finalNorm, context, hidden);
  graph.output(context, "cond", "float", ["batch", positions, hidden]);
  let pooled = rowOfEnd(graph, tokens, normal);
  if (projection !== undefined) {
    const { key, size } = projection;
    const weight = network.weight(key, projection.transposed ? [size, hidden] : [hidden, size]);
    const rows = projection.transposed ? weight : transposed(graph, weight);
    pooled = product(graph, pooled, rows, [hidden, size], { few: 2 });
  }
  graph.output(pooled, "pooled", "float", ["batch", projection?.size ?? hidden]);
}

/** Rows of the token table, and of `embeddings` for the ids after it. */
function embedded(network: Network, { layout, vocabulary, hidden }: TextEncoderConfig, tokens: Value): Value {
  const { graph } = network;
  const embeddings = graph.input("embeddings", "float", ["rows", hidden]);
  const [zero, first] = [graph.ints([0], []), graph.ints([vocabulary], [])];
  const isExtra = graph.node("GreaterOrEqual", [tokens, first]);
  const row = graph.node("Sub", [tokens, first]);
  const own = network.rows(KEYS[layout].tokens, [vocabulary, hidden], graph.node("Where", [isExtra, zero, tokens]));
  const extra = graph.node("Gather", [embeddings, graph.node("Where", [isExtra, row, zero])]);
  return graph.node("Where", [graph.node("Unsqueeze", [isExtra, graph.ints([2])]), extra, own]);
}

/** Sizes of one block of CLIP's transformers, those of texts and those of pictures. */
export type ClipBlockConfig = Pick<TextEncoderConfig, "layout" | "hidden" | "heads" | "mlp" | "activation">;

/** Number `index` of the blocks below `prefix`: x + attention(norm(x)), then x + MLP(norm(x)). */
export function clipBlock(
  network: Network,
  config: ClipBlockConfig,
  prefix: string,
  index: number,
  x: Value,
  mask?: Value,
): Value {
  const { graph } = network;
  const { hidden, heads, mlp, activation } = config;
  const keys = KEYS[config.layout];
  const at = `${prefix}${keys.block}.${index}`;
  const parts = queryKeyValue(network, config, at, layerNorm(network, `${at}.${keys.norms[0]}`, x, hidden));
  const mixed = attention(graph, parts, { heads, width: hidden, mask });
  const attended = linear(network, `${at}.${keys.out}`, mixed, [hidden, hidden], { few: 3 });
  const after = add(graph, x, attended);
  const normal = layerNorm(network, `${at}.${keys.norms[1]}`, after, hidden);
  const wide = linear(network, `${at}.${keys.mlp[0]}`, normal, [hidden, mlp], { few: 3 });
  const active = activation === "gelu" ? gelu(graph, wide) : quickGelu(graph, wide);
  return add(graph, after, linear(network, `${at}.${keys.mlp[1]}`, active, [mlp, hidden], { few: 3 }));
}

type QueryKeyValue = readonly [Value, Value, Value];

function queryKeyValue(network: Network, { layout, hidden }: ClipBlockConfig, at: string, x: Value): QueryKeyValue {
  const { graph } = network;
  if (layout === "hf") {
    const part = (name: string) => linear(network, `${at}.self_attn.${name}_proj`, x, [hidden, hidden], { few: 3 });
    return [part("q"), part("k"), part("v")];
  }
  const weight = network.weight(`${at}.attn.in_proj_weight`, [3 * hidden, hidden], x);
  const all = add(
    graph,
    product(graph, x, weight, [hidden, 3 * hidden], { few: 3 }),
    network.weight(`${at}.attn.in_proj_bias`, [3 * hidden]),
  );
  const sizes = graph.ints([hidden, hidden, hidden]);
  const [query, key, value] = graph.nodeWithOutputs("Split", [all, sizes], 3, { axis: { int: -1 } });
  return [query!, key!, value!];
}

/** The row [B, hidden] of [B, 77, hidden] at the first end token; the first row if there is none. */
function rowOfEnd(graph: OnnxGraph, tokens: Value, x: Value): Value {
  const isEnd = graph.node("Cast", [graph.node("Equal", [tokens, graph.ints([END_TOKEN], [])])], { to: { int: 1 } });
  const index = graph.node("ArgMax", [isEnd], { axis: { int: 1 }, keepdims: { int: 1 } });
  return graph.node("GatherND", [x, index], { batch_dims: { int: 1 } });
}
