import { LatentkitError } from "../../../base/errors.js";
import {
  add,
  attention,
  conv,
  FLOAT_BYTES,
  gelu,
  groupNorm,
  layerNorm,
  linear,
  linearOfFew,
  reshape,
  resizedAs,
  silu,
  type Trace,
  timestepEmbedding,
  tokensOf,
  toPicture,
} from "../networks/layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";

/** One block on the way down or up. */
export interface UnetBlock {
  /** A lone convolution, a residual block or a halving of the sides. */
  readonly kind: "conv" | "res" | "down";
  /** Channels of its output. */
  readonly channels: number;
  /** Blocks of the transformer after a residual block; 0: it has none. */
  readonly depth: number;
}

/** The way down and the middle, which a control net has as well. */
export interface UnetEncoderConfig extends TransformerConfig {
  readonly inChannels: number;
  /** Channels of the first block. */
  readonly modelChannels: number;
  /** Size of the vector beside the timestep (SDXL). Absent: none. */
  readonly labelDim?: number;
  /** In the order of the keys `input_blocks.N`. */
  readonly input: readonly UnetBlock[];
  /** With a depth: residual block, transformer, residual block; without: one residual block. Absent: nothing. */
  readonly middle?: UnetBlock;
}

/** Structure of a UNet with the keys of the latent-diffusion code. */
export interface UnetConfig extends UnetEncoderConfig {
  readonly outChannels: number;
  /** In the order of the keys `output_blocks.N`: each takes one output of `input`, the last first. */
  readonly output: readonly (UnetBlock & { readonly upsample: boolean })[];
}

/** Bytes of a run beside the weights, for each value of x: 24 values for each channel of the first level, as measured. */
export const unetWork = ({ modelChannels, inChannels }: UnetConfig): { readonly x: number } => ({
  x: (FLOAT_BYTES * 24 * modelChannels) / inChannels,
});

interface UnetOptions {
  /** Number of control nets, whose outputs are the inputs `control_N.NET` and `control_middle.NET`. */
  readonly controls?: number;
  readonly trace?: Trace;
}

/** Values that all blocks of one UNet use. */
export interface UnetInputs {
  readonly x: Value;
  /** SiLU of the time embedding. */
  readonly emb: Value;
  readonly context: Value;
}

/** A value and the number of its channels. */
export interface Picture {
  readonly value: Value;
  readonly channels: number;
}

/**
 * Writes a UNet. Inputs: x [B, inChannels, h, w], already scaled, with the channels of inpainting; timestep [B], which may
 * be fractional; context [B, S, contextDim]; y [B, labelDim] if there is one. Output: out [B, outChannels, h, w]. Any
 * sides: an odd one is rounded up on the way down and met again on the way up. Throws model.invalid for weights that are
 * absent or have other shapes.
 */
export function buildUnet(
  network: Network,
  config: UnetConfig,
  { controls = 0, trace = () => {} }: UnetOptions = {},
): void {
  const { graph } = network;
  const inputs = unetInputs(network, config, trace);
  const skips = downBlocks(network, config, inputs, { trace });
  let current = middleBlock(network, config, inputs, skips.at(-1)!);
  if (controls > 0) {
    const guided = (name: string, picture: Picture): Picture => {
      const residuals = Array.from({ length: controls }, (_, net) =>
        graph.input(`${name}.${net}`, "float", [`B_${net}`, picture.channels, `h_${name}_${net}`, `w_${name}_${net}`]),
      );
      const sum = residuals.reduce((all, residual) => add(graph, all, residual));
      return { ...picture, value: add(graph, picture.value, sum) };
    };
    for (const [index, skip] of skips.entries()) skips[index] = guided(`control_${index}`, skip);
    current = guided("control_middle", current);
  }
  trace("middle_block", current.value);
  for (const [index, block] of config.output.entries()) {
    const key = `output_blocks.${index}`;
    const skip = skips.pop()!;
    const joined = graph.node("Concat", [current.value, skip.value], { axis: { int: 1 } });
    const from = { value: joined, channels: current.channels + skip.channels };
    let { value } = resAndTransformer(network, config, inputs, key, block, from);
    if (block.upsample) {
      const larger = resizedAs(graph, value, skips.at(-1)!.value);
      const position = block.depth > 0 ? 2 : 1;
      value = conv(network, `${key}.${position}.conv`, larger, [block.channels, block.channels], { kernel: 3 });
    }
    trace(key, value);
    current = { value, channels: block.channels };
  }
  const { modelChannels, outChannels } = config;
  const last = activated(network, "out.0", current.value, modelChannels);
  const out = conv(network, "out.2", last, [modelChannels, outChannels], { kernel: 3 });
  graph.output(out, "out", "float", ["B", outChannels, "h", "w"]);
}

/** Declares the inputs of a UNet and embeds the timestep. */
export function unetInputs(network: Network, config: UnetEncoderConfig, trace: Trace = () => {}): UnetInputs {
  const { graph } = network;
  const { inChannels, contextDim, modelChannels, labelDim } = config;
  const x = graph.input("x", "float", ["B", inChannels, "h", "w"]);
  let emb = timeEmbedding(network, graph.input("timestep", "float", ["B"]), modelChannels);
  trace("time_embed", emb);
  const context = graph.input("context", "float", ["B", "S", contextDim]);
  if (labelDim !== undefined) {
    const y = graph.input("y", "float", ["B", labelDim]);
    const label = embedding(network, ["label_emb.0.0", "label_emb.0.2"], y, [labelDim, modelChannels]);
    trace("label_emb", label);
    emb = add(graph, emb, label);
  }
  return { x, emb: silu(graph, emb), context };
}

/** Writes the input blocks and returns the output of each; `hint` is added to that of the first. */
export function downBlocks(
  network: Network,
  config: UnetEncoderConfig,
  inputs: UnetInputs,
  { hint, trace = () => {} }: { readonly hint?: Value; readonly trace?: Trace } = {},
): Picture[] {
  let current: Picture = { value: inputs.x, channels: config.inChannels };
  return config.input.map((block, index) => {
    const key = `input_blocks.${index}`;
    const change = [current.channels, block.channels] as const;
    if (block.kind === "res") {
      current = resAndTransformer(network, config, inputs, key, block, current);
    } else {
      const options = block.kind === "down" ? ({ kernel: 3, stride: 2 } as const) : ({ kernel: 3 } as const);
      const value = conv(network, block.kind === "down" ? `${key}.0.op` : `${key}.0`, current.value, change, options);
      current = { value, channels: block.channels };
    }
    if (index === 0 && hint !== undefined) current = { ...current, value: add(network.graph, current.value, hint) };
    trace(key, current.value);
    return current;
  });
}

/** Writes the middle of a UNet. */
export function middleBlock(network: Network, config: UnetEncoderConfig, inputs: UnetInputs, from: Picture): Picture {
  const { middle } = config;
  if (middle === undefined) return from;
  const current = resAndTransformer(network, config, inputs, "middle_block", middle, from);
  if (middle.depth === 0) return current;
  const { channels } = middle;
  const value = resBlock(network, "middle_block.2", current.value, [channels, channels], { ...config, ...inputs });
  return { value, channels };
}

/** Writes KEY.0, a residual block, and KEY.1, the transformer after it. */
function resAndTransformer(
  network: Network,
  config: UnetEncoderConfig,
  inputs: UnetInputs,
  key: string,
  { channels, depth }: UnetBlock,
  from: Picture,
): Picture {
  let value = resBlock(network, `${key}.0`, from.value, [from.channels, channels], { ...config, ...inputs });
  if (depth > 0) value = transformer(network, `${key}.1`, value, [channels, depth], inputs.context, config);
  return { value, channels };
}

/** Structure that all transformers of a UNet share. */
interface TransformerConfig {
  /** Width of the conditioning's tokens. */
  readonly contextDim: number;
  /** The projections into and out of a transformer are linear layers; otherwise 1x1 convolutions. */
  readonly linearProjection: boolean;
  /** Attention heads: as many at every width, or all of one size. */
  readonly heads: { readonly count: number } | { readonly size: number };
}

/** The time embedding of a UNet is this many times as wide as its pictures. */
const EMBEDDING_WIDTH = 4;
/** Two latents of 64x64 have 2 · 8 · 4096² scores. */
const ATTENTION_PARTS = 8;
const noBias = { bias: false };
const RES_EPSILON = 1e-5;
const TRANSFORMER_EPSILON = 1e-6;

/** Normalisation and SiLU in front of a convolution. */
const activated = (network: Network, key: string, x: Value, channels: number): Value =>
  silu(network.graph, groupNorm(network, key, x, channels, RES_EPSILON));

/** Linear, SiLU, linear, as time and label embeddings are made, to a width of 4 modelChannels. */
function embedding(
  network: Network,
  [first, second]: readonly [string, string],
  x: Value,
  [inputs, modelChannels]: readonly [number, number],
): Value {
  const width = EMBEDDING_WIDTH * modelChannels;
  const hidden = silu(network.graph, linearOfFew(network, first, x, 2, [inputs, width]));
  return linearOfFew(network, second, hidden, 2, [width, width]);
}

/** Time embedding [B, 4 modelChannels] of timesteps [B]. */
const timeEmbedding = (network: Network, timestep: Value, modelChannels: number): Value =>
  embedding(network, ["time_embed.0", "time_embed.2"], timestepEmbedding(network.graph, timestep, modelChannels), [
    modelChannels,
    modelChannels,
  ]);

/** A residual block; `emb` is the SiLU of the time embedding, [B, 4 modelChannels]. @internal */
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
  const shift = linearOfFew(network, `${key}.emb_layers.1`, emb, 2, [EMBEDDING_WIDTH * modelChannels, outputs]);
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

/** A transformer of `depth` blocks over the cells of a picture; `context` is [B, S, contextDim]. */
export function transformer(
  network: Network,
  key: string,
  x: Value,
  [channels, depth]: readonly [number, number],
  context: Value,
  config: TransformerConfig,
): Value {
  const { graph } = network;
  const projection = { asConv: !config.linearProjection };
  const cells = tokensOf(graph, groupNorm(network, `${key}.norm`, x, channels, TRANSFORMER_EPSILON));
  let tokens = linear(network, `${key}.proj_in`, cells, [channels, channels], projection);
  for (let block = 0; block < depth; block++)
    tokens = transformerBlock(network, `${key}.transformer_blocks.${block}`, tokens, channels, context, config);
  const out = linear(network, `${key}.proj_out`, tokens, [channels, channels], projection);
  return add(graph, x, toPicture(graph, out, channels, x));
}

function transformerBlock(
  network: Network,
  key: string,
  x: Value,
  channels: number,
  context: Value,
  { contextDim, heads }: TransformerConfig,
): Value {
  const { graph } = network;
  const count = "count" in heads ? heads.count : channels / heads.size;
  if (!Number.isInteger(channels / count) || !Number.isInteger(count)) {
    const expected = "count" in heads ? `${heads.count} attention heads` : `attention heads of ${heads.size}`;
    throw new LatentkitError("model.invalid", `${key}: ${channels} channels do not split into ${expected}.`);
  }
  const attend = (name: string, queries: Value, keys: Value, values: Value, parts = 1): Value => {
    const query = linear(network, `${key}.${name}.to_q`, queries, [channels, channels], noBias);
    const out = attention(graph, [query, keys, values], { heads: count, width: channels, parts });
    return linear(network, `${key}.${name}.to_out.0`, out, [channels, channels]);
  };
  const norm = (name: string, value: Value): Value => layerNorm(network, `${key}.${name}`, value, channels);
  const own = norm("norm1", x);
  const [ownKeys, ownValues] = ["to_k", "to_v"].map((name) =>
    linear(network, `${key}.attn1.${name}`, own, [channels, channels], noBias),
  );
  const first = add(graph, attend("attn1", own, ownKeys!, ownValues!, ATTENTION_PARTS), x);
  const [keys, values] = ["to_k", "to_v"].map((name) =>
    linearOfFew(network, `${key}.attn2.${name}`, context, 3, [contextDim, channels], noBias),
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
