import { add, conv, FLOAT_BYTES, resizedAs, silu, type Trace } from "../networks/layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import {
  type Attended,
  activated,
  embedding,
  type FurtherAttention,
  resBlock,
  type TransformerConfig,
  timeEmbedding,
  transformer,
} from "./blocks.js";

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
  /** Numbers of the label that are the pooled text; those of sizes follow. Absent: it has no label. */
  readonly pooledWidth?: number;
  /** In the order of the keys `output_blocks.N`: each takes one output of `input`, the last first. */
  readonly output: readonly (UnetBlock & { readonly upsample: boolean })[];
}

/** Values of a run for each channel of the first level, as measured: with transformers there, and without them as in SDXL. */
const VALUES = { attending: 22, others: 12 };

/** Bytes of a run beside the weights, for each value of x. */
export function unetWork({ modelChannels, inChannels, input }: UnetConfig): { readonly x: number } {
  const attends = input.some(({ channels, depth }) => channels === modelChannels && depth > 0);
  return { x: (FLOAT_BYTES * VALUES[attends ? "attending" : "others"] * modelChannels) / inChannels };
}

interface UnetOptions {
  /** Number of control nets, whose outputs are the inputs `control_N.NET` and `control_middle.NET`. */
  readonly controls?: number;
  /** Attention of the transformers beside that on the prompt. */
  readonly further?: FurtherAttention;
  /** Keys of blocks after which the inputs `added_KEY` are added: "input_blocks.2", "middle_block". */
  readonly added?: readonly string[];
  readonly trace?: Trace;
}

/** Values that all blocks of one UNet use. */
export interface UnetInputs extends Attended {
  readonly x: Value;
  /** SiLU of the time embedding. */
  readonly emb: Value;
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
  { controls = 0, further, added = [], trace = () => {} }: UnetOptions = {},
): void {
  const { graph } = network;
  const inputs = { ...unetInputs(network, config, { trace }), further };
  const after = (key: string, picture: Picture): Picture => {
    if (!added.includes(key)) return picture;
    const name = additionTo(key);
    const features = graph.input(name, "float", [`items_${name}`, picture.channels, `h_${name}`, `w_${name}`]);
    return { ...picture, value: add(graph, picture.value, features) };
  };
  const skips = downBlocks(network, config, inputs, { after, trace });
  let current = after("middle_block", middleBlock(network, config, inputs, skips.at(-1)!));
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

/** Declares the inputs of a UNet and embeds the timestep; `further` [1 or B, 4 modelChannels] is added to the embedding. */
export function unetInputs(
  network: Network,
  config: UnetEncoderConfig,
  { further, trace = () => {} }: { readonly further?: Value; readonly trace?: Trace } = {},
): UnetInputs {
  const { graph } = network;
  const { inChannels, contextDim, modelChannels, labelDim } = config;
  const x = graph.input("x", "float", ["B", inChannels, "h", "w"]);
  let emb = timeEmbedding(network, graph.input("timestep", "float", ["B"]), modelChannels);
  trace("time_embed", emb);
  if (further !== undefined) emb = add(graph, emb, further);
  const context = graph.input("context", "float", ["B", "S", contextDim]);
  if (labelDim !== undefined) {
    const y = graph.input("y", "float", ["B", labelDim]);
    const label = embedding(network, ["label_emb.0.0", "label_emb.0.2"], y, [labelDim, modelChannels]);
    trace("label_emb", label);
    emb = add(graph, emb, label);
  }
  return { x, emb: silu(graph, emb), context };
}

/** Name of the input that is added after the block with a key. */
export const additionTo = (key: string): string => `added_${key}`;

interface DownOptions {
  /** Added to the output of the first block. */
  readonly hint?: Value;
  /** Changes the output of a block, by its key. */
  after?(key: string, picture: Picture): Picture;
  readonly trace?: Trace;
}

/** Writes the input blocks and returns the output of each. */
export function downBlocks(
  network: Network,
  config: UnetEncoderConfig,
  inputs: UnetInputs,
  { hint, after = (_, picture) => picture, trace = () => {} }: DownOptions = {},
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
    current = after(key, current);
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
  if (depth > 0) value = transformer(network, `${key}.1`, value, [channels, depth], inputs, config);
  return { value, channels };
}
