import {
  add,
  attention,
  conv,
  cornersOf,
  doubled,
  FLOAT_BYTES,
  groupNorm,
  imagesOf,
  linear,
  planesOf,
  reshape,
  silu,
  type Trace,
  tokensOf,
  toPicture,
} from "../networks/layers.js";
import { split } from "../networks/transformer-layers.js";
import { convInTiles, TILE } from "../networks/winograd.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { channelNorm, ofOneFrame } from "./wan.js";

/** Sizes of a VAE whose networks halve a picture's sides thrice. */
export interface VaeConfig {
  /** Stable Diffusion's, which Flux has too, or Wan's, which is one of videos: a picture is its first frame. */
  readonly family: "sd" | "wan";
  /** Channels at a picture's size in the decoder. */
  readonly channels: number;
  /** Channels at a picture's size in the encoder, which may be wider. */
  readonly encoderChannels: number;
  /** Channels of each level as multiples of these, a picture's size first. */
  readonly multipliers: readonly number[];
  /** Res blocks of each level of the encoder; the decoder has one more. */
  readonly blocks: number;
  /** Channels between the halves: those of latents unless it is normalised. */
  readonly latentChannels: number;
  /** Whether a latent's cell has 2 x 2 of them, normalised by running figures, as in Flux.2. */
  readonly normalised: boolean;
  /** Whether a 1x1 convolution stands between latents and each half. */
  readonly quantised: boolean;
  /** Sides of the weights of its attention: 2, or 4 if they are stored as 1x1 convolutions. */
  readonly attention: 2 | 4;
  readonly hasEncoder: boolean;
}

/** Shape of a VAE's latents: their channels, and pixels along a side of a cell. */
export const latentsOf = ({
  latentChannels,
  normalised,
}: Pick<VaeConfig, "latentChannels" | "normalised">): {
  readonly channels: number;
  readonly cell: number;
} => (normalised ? { channels: 4 * latentChannels, cell: 2 * FACTOR } : { channels: latentChannels, cell: FACTOR });

/**
 * Pictures of the widest level that a decoder and an encoder hold at once, as measured from 512 x 512 to 1024 x 1024. One of
 * few channels is not computed in tiles, which take memory too.
 */
const COPIES = { inTiles: { z: 5.5, image: 6.5 }, whole: { z: 4.5, image: 3.5 } } as const;

/** Bytes of a run beside the weights, for each value of its input: pictures of the widest level. */
export function vaeWork({ family, channels, encoderChannels, multipliers, latentChannels }: VaeConfig): {
  readonly z: number;
  readonly image: number;
} {
  const [first = 1, second = first] = multipliers;
  // Wan's second level has half as many channels when it has a picture's size
  const widest = channels * (family === "wan" ? Math.max(first, second / 2) : Math.max(first, second));
  const ofEncoder = encoderChannels * first;
  // a normalised cell has four times as many pixels, and as many values
  const cell = (FACTOR * FACTOR) / latentChannels;
  const work = (width: number, half: "z" | "image"): number =>
    FLOAT_BYTES * width * COPIES[width < LEAST_CHANNELS ? "whole" : "inTiles"][half];
  return { z: work(widest, "z") * cell, image: work(ofEncoder, "image") / COLOURS };
}

interface VaeOptions {
  /** Pictures as nodes pass them: [B, H, W, 3] in 0…1, clamped when decoded. */
  readonly asImages?: boolean;
  readonly trace?: Trace;
}

const EPSILON = 1e-6;
/** Channels from which on a convolution is faster in tiles. */
const LEAST_CHANNELS = 128;
/** Red, green and blue. */
const COLOURS = 3;
/** A cell of zeros at the right and the bottom. */
const PADS_OF_DOWNSAMPLE = [0, 0, 1, 1] as const;
const FACTOR = 8;
/** A picture of 1024x1024 has 16384 cells. */
const ATTENTION_PARTS = 16;

/**
 * Writes the decoder: `z` [B, C, h, w], a latent as nodes pass it, to `image` [B, 3, cell · h, cell · w], about -1…1.
 * Throws model.invalid for weights that are absent or have other shapes.
 */
export function buildVaeDecoder(
  whole: Network,
  config: VaeConfig,
  { asImages = false, trace = () => {} }: VaeOptions = {},
): void {
  const { channels, multipliers, blocks, latentChannels, quantised, family } = config;
  const network = family === "wan" ? ofOneFrame(whole) : whole;
  const { graph } = network;
  const layers = layersOf(network, config, trace, channels);
  const latents = latentsOf(config);
  const batch = batchOf(graph, config, channels);
  const z = graph.input("z", "float", [batch, latents.channels, "height", "width"]);
  let width = channels * multipliers.at(-1)!;
  const cells = config.normalised ? withoutNorm(network, z, latents.channels) : z;
  const unquantised = quantised
    ? conv(network, "post_quant_conv", cells, [latentChannels, latentChannels], { kernel: 1 })
    : cells;
  let x = layers.conv("decoder.conv_in", unquantised, [latentChannels, width]);
  x = layers.middle("decoder.mid", x, width);
  for (let level = multipliers.length - 1; level >= 0; level--) {
    const out = channels * multipliers[level]!;
    for (let index = 0; index <= blocks; index++) {
      x = layers.resBlock(`decoder.up.${level}.block.${index}`, x, [width, out], level);
      width = out;
    }
    if (level === 0) continue;
    const next = family === "wan" ? width / 2 : width;
    x = layers.upsample(`decoder.up.${level}.upsample`, x, [width, next], level - 1);
    width = next;
  }
  const image = layers.head("decoder", x, [width, COLOURS]);
  const sides = [`height*${latents.cell}`, `width*${latents.cell}`] as const;
  if (asImages) graph.output(toImages(graph, image), "image", "float", [batch, ...sides, COLOURS]);
  else graph.output(image, "image", "float", [batch, COLOURS, ...sides]);
}

/**
 * Writes the encoder: `image` [B, 3, cell · h, cell · w] in -1…1 to `latent` [B, C, h, w], the mean, as nodes pass it.
 * Throws as buildVaeDecoder.
 */
export function buildVaeEncoder(
  whole: Network,
  config: VaeConfig,
  { asImages = false, trace = () => {} }: VaeOptions = {},
): void {
  const { encoderChannels: channels, multipliers, blocks, latentChannels, quantised, family } = config;
  const network = family === "wan" ? ofOneFrame(whole) : whole;
  const { graph } = network;
  const layers = layersOf(network, config, trace, 0);
  const latents = latentsOf(config);
  const batch = batchOf(graph, config, channels);
  const image = asImages
    ? ofImages(graph, graph.input("image", "float", [batch, "height", "width", COLOURS]))
    : graph.input("image", "float", [batch, COLOURS, "height", "width"]);
  let width = channels;
  let x = layers.conv("encoder.conv_in", image, [COLOURS, width]);
  for (const [level, multiplier] of multipliers.entries()) {
    const out = channels * multiplier;
    for (let index = 0; index < blocks; index++) {
      x = layers.resBlock(`encoder.down.${level}.block.${index}`, x, [width, out], level);
      width = out;
    }
    if (level < multipliers.length - 1) x = layers.downsample(`encoder.down.${level}.downsample`, x, width);
  }
  x = layers.middle("encoder.mid", x, width);
  // mean and logarithm of variance of each channel
  const both = 2 * latentChannels;
  const unquantised = layers.head("encoder", x, [width, both]);
  const moments = quantised ? conv(network, "quant_conv", unquantised, [both, both], { kernel: 1 }) : unquantised;
  trace("quant_conv", moments);
  const [from, to, axis] = [0, latentChannels, 1].map((value) => graph.ints([value]));
  const mean = graph.node("Slice", [moments, from, to, axis]);
  const latent = config.normalised ? withNorm(network, mean, latents.channels) : mean;
  const sides = [`height/${latents.cell}`, `width/${latents.cell}`] as const;
  graph.output(latent, "latent", "float", [batch, latents.channels, ...sides]);
}

/** Added to a running variance. */
const NORM_EPSILON = 1e-4;

/** Cells of 2 x 2 as channels, (x - mean) / sqrt(variance). */
function withNorm(network: Network, x: Value, channels: number): Value {
  const { graph } = network;
  const { mean, deviation } = runningFigures(network, channels);
  // corners come after each other: all of a channel shall
  const order = Array.from({ length: channels }, (_, index) => (index % 4) * (channels / 4) + Math.floor(index / 4));
  const cells = graph.node("Gather", [cornersOf(graph, x), graph.ints(order)], { axis: { int: 1 } });
  return graph.node("Div", [graph.node("Sub", [cells, mean]), deviation]);
}

/** Undoes withNorm. */
function withoutNorm(network: Network, x: Value, channels: number): Value {
  const { graph } = network;
  const { mean, deviation } = runningFigures(network, channels);
  const cells = add(graph, graph.node("Mul", [x, deviation]), mean);
  return graph.node("DepthToSpace", [cells], { blocksize: { int: 2 }, mode: { text: "CRD" } });
}

/** Mean and deviation [channels, 1, 1] of latents, as training has followed them. */
function runningFigures(network: Network, channels: number): { readonly mean: Value; readonly deviation: Value } {
  const { graph } = network;
  const figure = (name: string): Value => reshape(graph, network.weight(`bn.${name}`, [channels]), [channels, 1, 1]);
  const variance = add(graph, figure("running_var"), graph.floats([NORM_EPSILON], []));
  return { mean: figure("running_mean"), deviation: graph.node("Sqrt", [variance]) };
}

/** Pictures of one run: those in tiles come one by one. */
const batchOf = ({ target }: OnnxGraph, { multipliers }: VaeConfig, channels: number): number | string =>
  target.convInTiles && channels * Math.max(...multipliers) >= LEAST_CHANNELS ? 1 : "batch";

/** (x + 1) / 2, clamped, channels last. */
function toImages(graph: OnnxGraph, x: Value): Value {
  const [half, zero, one] = [0.5, 0, 1].map((value) => graph.floats([value], []));
  const inUnit = add(graph, graph.node("Mul", [x, half]), half!);
  return imagesOf(graph, graph.node("Clip", [inUnit, zero, one]));
}

/** 2 x - 1, channels first. */
function ofImages(graph: OnnxGraph, images: Value): Value {
  const [two, one] = [2, 1].map((value) => graph.floats([value], []));
  return graph.node("Sub", [graph.node("Mul", [planesOf(graph, images), two]), one]);
}

type Width = readonly [inputs: number, outputs: number];

/**
 * The blocks of both halves. `mostWhole`: most channels of a convolution at a picture's size that is computed as a whole;
 * wider ones are computed in halves, since they would need the most memory of the network.
 */
function layersOf(
  network: Network,
  { attention: rank, multipliers, family }: VaeConfig,
  trace: Trace,
  mostWhole: number,
) {
  const { graph } = network;
  const after = (key: string, value: Value): Value => {
    trace(key, value);
    return value;
  };
  const norm = (key: string, x: Value, channels: number): Value =>
    family === "wan" ? channelNorm(network, key, x, channels) : groupNorm(network, key, x, channels, EPSILON);
  const conv3 = (key: string, x: Value, width: Width): Value => conv(network, key, x, width, { kernel: 3 });
  const convAt = (level: number, key: string, x: Value, width: Width): Value => {
    if (!graph.target.convInTiles || Math.min(...width) < LEAST_CHANNELS) return conv3(key, x, width);
    // a picture has whole cells of a latent, and so these levels have whole tiles
    const isWhole = (FACTOR >> level) % TILE === 0;
    return convInTiles(network, key, x, width, { isWhole, inHalves: level === 0 && width[0] > mostWhole });
  };
  const resBlock = (key: string, x: Value, [inputs, outputs]: Width, level: number): Value => {
    const first = convAt(level, `${key}.conv1`, silu(graph, norm(`${key}.norm1`, x, inputs)), [inputs, outputs]);
    const second = convAt(level, `${key}.conv2`, silu(graph, norm(`${key}.norm2`, first, outputs)), [outputs, outputs]);
    const skip = inputs === outputs ? x : conv(network, `${key}.nin_shortcut`, x, [inputs, outputs], { kernel: 1 });
    return after(key, add(graph, skip, second));
  };
  const attend = (key: string, x: Value, channels: number): Value => {
    const tokens = tokensOf(graph, norm(`${key}.norm`, x, channels));
    const layer = (name: string, value: Value, outputs = channels): Value =>
      linear(network, `${key}.${name}`, value, [channels, outputs], { asConv: rank === 4 });
    const parts =
      family === "wan"
        ? split(graph, layer("to_qkv", tokens, 3 * channels), [channels, channels, channels])
        : ["q", "k", "v"].map((name) => layer(name, tokens));
    const mixed = attention(graph, parts as [Value, Value, Value], {
      heads: 1,
      width: channels,
      parts: ATTENTION_PARTS,
    });
    return after(key, add(graph, x, toPicture(graph, layer("proj_out", mixed), channels, x)));
  };
  return {
    conv: (key: string, x: Value, width: Width): Value => after(key, conv3(key, x, width)),
    resBlock,
    middle(key: string, x: Value, channels: number): Value {
      const last = multipliers.length - 1;
      const first = resBlock(`${key}.block_1`, x, [channels, channels], last);
      return resBlock(`${key}.block_2`, attend(`${key}.attn_1`, first, channels), [channels, channels], last);
    },
    upsample: (key: string, x: Value, width: Width, level: number): Value =>
      after(key, convAt(level, `${key}.conv`, doubled(graph, x), width)),
    downsample: (key: string, x: Value, channels: number): Value =>
      after(
        key,
        conv(network, `${key}.conv`, x, [channels, channels], { kernel: 3, stride: 2, pads: PADS_OF_DOWNSAMPLE }),
      ),
    head(half: string, x: Value, [inputs, outputs]: Width): Value {
      const normal = after(`${half}.norm_out`, norm(`${half}.norm_out`, x, inputs));
      return after(`${half}.conv_out`, conv3(`${half}.conv_out`, silu(graph, normal), [inputs, outputs]));
    },
  };
}
