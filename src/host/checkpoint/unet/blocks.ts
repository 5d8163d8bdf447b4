import { LatentkitError } from "../../../base/errors.js";
import {
  add,
  attention,
  conv,
  gelu,
  groupNorm,
  layerNorm,
  linear,
  reshape,
  silu,
  timestepEmbedding,
  tokensOf,
  toPicture,
} from "../networks/layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";

/** Structure that all transformers of a UNet share. */
export interface TransformerConfig {
  /** Width of the conditioning's tokens. */
  readonly contextDim: number;
  /** The projections into and out of a transformer are linear layers; otherwise 1x1 convolutions. */
  readonly linearProjection: boolean;
  /** Attention heads: as many at every width, or all of one size. */
  readonly heads: { readonly count: number } | { readonly size: number };
}

/**
 * Value that is added to the result of the attention on the prompt, [B, L, width], in block `depth` of the transformer
 * below `key`; undefined: none.
 */
export type FurtherAttention = (
  key: string,
  depth: number,
  query: Value,
  size: { readonly width: number; readonly heads: number },
) => Value | undefined;

/** Everything that the transformers of a UNet attend to beside themselves. */
export interface Attended {
  /** Tokens of the prompt, [B, S, contextDim]. */
  readonly context: Value;
  readonly further?: FurtherAttention;
}

/** The time embedding of a UNet is this many times as wide as its pictures. */
const EMBEDDING_WIDTH = 4;
/** Two latents of 64x64 have 2 · 8 · 4096² scores. */
const ATTENTION_PARTS = 8;
const noBias = { bias: false };
const RES_EPSILON = 1e-5;
const TRANSFORMER_EPSILON = 1e-6;

/** Normalisation and SiLU in front of a convolution. */
export const activated = (network: Network, key: string, x: Value, channels: number): Value =>
  silu(network.graph, groupNorm(network, key, x, channels, RES_EPSILON));

/** Linear, SiLU, linear, as time and label embeddings are made, to a width of 4 modelChannels. */
export function embedding(
  network: Network,
  [first, second]: readonly [string, string],
  x: Value,
  [inputs, modelChannels]: readonly [number, number],
): Value {
  const width = EMBEDDING_WIDTH * modelChannels;
  const hidden = silu(network.graph, linear(network, first, x, [inputs, width], { few: 2 }));
  return linear(network, second, hidden, [width, width], { few: 2 });
}

/** Time embedding [B, 4 modelChannels] of timesteps [B]. */
export const timeEmbedding = (network: Network, timestep: Value, modelChannels: number): Value =>
  embedding(network, ["time_embed.0", "time_embed.2"], timestepEmbedding(network.graph, timestep, modelChannels), [
    modelChannels,
    modelChannels,
  ]);

/** A residual block; `emb` is the SiLU of the time embedding, [B, 4 modelChannels]. */
export function resBlock(
  network: Network,
  key: string,
  x: Value,
  [inputs, outputs]: readonly [number, number],
  { emb, modelChannels }: { readonly emb: Value; readonly modelChannels: number },
): Value {
  const { graph } = network;
  const first = conv(
    network,
    `${key}.in_layers.2`,
    activated(network, `${key}.in_layers.0`, x, inputs),
    [inputs, outputs],
    {
      kernel: 3,
    },
  );
  const shift = linear(network, `${key}.emb_layers.1`, emb, [EMBEDDING_WIDTH * modelChannels, outputs], {
    few: 2,
  });
  const shifted = add(graph, first, reshape(graph, shift, [0, outputs, 1, 1]));
  const second = conv(
    network,
    `${key}.out_layers.3`,
    activated(network, `${key}.out_layers.0`, shifted, outputs),
    [outputs, outputs],
    { kernel: 3 },
  );
  const skip = inputs === outputs ? x : conv(network, `${key}.skip_connection`, x, [inputs, outputs], { kernel: 1 });
  return add(graph, skip, second);
}

/** A transformer of `depth` blocks over the cells of a picture. */
export function transformer(
  network: Network,
  key: string,
  x: Value,
  [channels, depth]: readonly [number, number],
  attended: Attended,
  config: TransformerConfig,
): Value {
  const { graph } = network;
  const projection = { asConv: !config.linearProjection };
  const cells = tokensOf(graph, groupNorm(network, `${key}.norm`, x, channels, TRANSFORMER_EPSILON));
  let tokens = linear(network, `${key}.proj_in`, cells, [channels, channels], projection);
  for (let block = 0; block < depth; block++)
    tokens = transformerBlock(network, [key, block], tokens, channels, attended, config);
  const out = linear(network, `${key}.proj_out`, tokens, [channels, channels], projection);
  return add(graph, x, toPicture(graph, out, channels, x));
}

function transformerBlock(
  network: Network,
  [transformerKey, depth]: readonly [string, number],
  x: Value,
  channels: number,
  { context, further }: Attended,
  { contextDim, heads }: TransformerConfig,
): Value {
  const { graph } = network;
  const key = `${transformerKey}.transformer_blocks.${depth}`;
  const count = "count" in heads ? heads.count : channels / heads.size;
  if (!Number.isInteger(channels / count) || !Number.isInteger(count)) {
    const expected = "count" in heads ? `${heads.count} attention heads` : `attention heads of ${heads.size}`;
    throw new LatentkitError("model.invalid", `${key}: ${channels} channels do not split into ${expected}.`);
  }
  const attend = (name: string, queries: Value, keys: Value, values: Value, parts = 1): Value => {
    const query = linear(network, `${key}.${name}.to_q`, queries, [channels, channels], noBias);
    const out = attention(graph, [query, keys, values], { heads: count, width: channels, parts });
    const other =
      name === "attn2" ? further?.(transformerKey, depth, query, { width: channels, heads: count }) : undefined;
    const sum = other === undefined ? out : add(graph, out, other);
    return linear(network, `${key}.${name}.to_out.0`, sum, [channels, channels]);
  };
  const norm = (name: string, value: Value): Value => layerNorm(network, `${key}.${name}`, value, channels);
  const own = norm("norm1", x);
  const [ownKeys, ownValues] = ["to_k", "to_v"].map((name) =>
    linear(network, `${key}.attn1.${name}`, own, [channels, channels], noBias),
  );
  const first = add(graph, attend("attn1", own, ownKeys!, ownValues!, ATTENTION_PARTS), x);
  const [keys, values] = ["to_k", "to_v"].map((name) =>
    linear(network, `${key}.attn2.${name}`, context, [contextDim, channels], { ...noBias, few: 3 }),
  );
  const second = add(graph, attend("attn2", norm("norm2", first), keys!, values!), first);
  return add(graph, feedForward(network, `${key}.ff.net`, norm("norm3", second), channels), second);
}

/** Feed-forward of a transformer block: one half of a wide layer times the gelu of the other. */
function feedForward(network: Network, key: string, x: Value, channels: number): Value {
  const { graph } = network;
  const width = 4 * channels;
  const wide = linear(network, `${key}.0.proj`, x, [channels, 2 * width]);
  const [part, gate] = graph.nodeWithOutputs("Split", [wide, graph.ints([width, width])], 2, { axis: { int: -1 } });
  const gated = graph.node("Mul", [part!, gelu(graph, gate!)]);
  return linear(network, `${key}.2`, gated, [width, channels]);
}
