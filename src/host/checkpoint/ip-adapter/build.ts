import { add, attention, FLOAT_BYTES, gelu, layerNorm, linear, reshape } from "../networks/layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";

/** The projection of an IPAdapter: how it makes tokens of an encoded picture. */
export type ProjectionConfig = {
  /** Width of its tokens, which is that of a prompt's. */
  readonly contextDim: number;
  /** Width of the encoder's state that it reads. */
  readonly inputs: number;
} & (
  | { readonly kind: "base"; readonly tokens: number }
  /** One token for each of the encoder's. */
  | { readonly kind: "full-face" }
  | {
      readonly kind: "plus";
      readonly tokens: number;
      /** Width between its layers, of its attention and of its MLPs. */
      readonly width: number;
      readonly attention: number;
      readonly mlp: number;
      readonly layers: number;
    }
);

/** Bytes of a run beside the weights, for each value of the state: those of a layer, of its inputs and its MLP. */
export const projectionWork = (config: ProjectionConfig): { readonly state: number } => ({
  state: FLOAT_BYTES * (config.kind === "plus" ? 4 + (4 * config.width + 3 * config.attention) / config.inputs : 8),
});

/** Numbers of a head of the resampler. */
export const HEAD_SIZE = 64;
const noBias = { bias: false };

/**
 * Writes the projection of an IPAdapter. Input: `state` of a CLIP vision encoder, [B, inputs] for "base" and
 * [B, positions, inputs] for the others. Output: `tokens` [B, tokens, contextDim]. Source: Ye et al. 2023,
 * "IP-Adapter", by the facts of its files.
 */
export function buildProjection(network: Network, config: ProjectionConfig): void {
  const { graph } = network;
  const { kind, inputs, contextDim } = config;
  const sides = kind === "base" ? ["batch", inputs] : ["batch", "positions", inputs];
  const state = graph.input("state", "float", sides);
  const tokens = projected(network, config, state);
  graph.output(tokens, "tokens", "float", ["batch", kind === "full-face" ? "positions" : config.tokens, contextDim]);
}

function projected(network: Network, config: ProjectionConfig, state: Value): Value {
  const { graph } = network;
  const { inputs, contextDim } = config;
  switch (config.kind) {
    case "base": {
      const wide = linear(network, "image_proj.proj", state, [inputs, config.tokens * contextDim]);
      return layerNorm(network, "image_proj.norm", reshape(graph, wide, [-1, config.tokens, contextDim]), contextDim);
    }
    case "full-face": {
      const inner = gelu(graph, linear(network, "image_proj.proj.0", state, [inputs, inputs]));
      const out = linear(network, "image_proj.proj.2", inner, [inputs, contextDim]);
      return layerNorm(network, "image_proj.proj.3", out, contextDim);
    }
    case "plus":
      return resampler(network, config, state);
  }
}

/** Latents that read the picture layer by layer. Source: Alayrac et al. 2022, "Flamingo". */
function resampler(
  network: Network,
  config: Extract<ProjectionConfig, { readonly kind: "plus" }>,
  state: Value,
): Value {
  const { graph } = network;
  const { inputs, contextDim, tokens, width, attention: inner, mlp, layers } = config;
  const picture = linear(network, "image_proj.proj_in", state, [inputs, width]);
  const batch = graph.node("Shape", [state], { end: { int: 1 } });
  const shape = graph.node("Concat", [batch, graph.ints([tokens, width])], { axis: { int: 0 } });
  let latents = graph.node("Expand", [network.weight("image_proj.latents", [1, tokens, width]), shape]);
  for (let layer = 0; layer < layers; layer++) {
    const at = `image_proj.layers.${layer}`;
    const own = layerNorm(network, `${at}.0.norm2`, latents, width);
    const normal = layerNorm(network, `${at}.0.norm1`, picture, width);
    const both = graph.node("Concat", [normal, own], { axis: { int: 1 } });
    const query = linear(network, `${at}.0.to_q`, own, [width, inner], noBias);
    const keyValue = linear(network, `${at}.0.to_kv`, both, [width, 2 * inner], noBias);
    const [key, value] = graph.nodeWithOutputs("Split", [keyValue, graph.ints([inner, inner])], 2, {
      axis: { int: -1 },
    });
    const heads = inner / HEAD_SIZE;
    const read = attention(graph, [query, key!, value!], { heads, width: inner });
    latents = add(graph, latents, linear(network, `${at}.0.to_out`, read, [inner, width], noBias));
    const after = layerNorm(network, `${at}.1.0`, latents, width);
    const wide = linear(network, `${at}.1.1`, after, [width, mlp], noBias);
    latents = add(graph, latents, linear(network, `${at}.1.3`, gelu(graph, wide), [mlp, width], noBias));
  }
  const out = linear(network, "image_proj.proj_out", latents, [width, contextDim]);
  return layerNorm(network, "image_proj.norm_out", out, contextDim);
}

/** The keys and values of an IPAdapter, which the attention of a UNet reads beside those of the prompt. */
export interface KeysConfig {
  readonly contextDim: number;
  /** Channels of a layer, by its number in the file's keys. */
  readonly channels: ReadonlyMap<number, number>;
}

/** Keys and values [B, L, channels] of a layer for tokens [B, L, contextDim]. */
export function keysAndValues(
  network: Network,
  { contextDim, channels }: KeysConfig,
  layer: number,
  tokens: Value,
): readonly [Value, Value] {
  const of = (part: "k" | "v"): Value =>
    linear(network, `ip_adapter.${layer}.to_${part}_ip`, tokens, [contextDim, channels.get(layer)!], {
      ...noBias,
      few: 3,
    });
  return [of("k"), of("v")];
}
