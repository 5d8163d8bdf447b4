import { reshape } from "../networks/layers.js";
import type { Value } from "../onnx/graph.js";
import type { Rename } from "../recognition/part.js";
import type { Network } from "../weights/network.js";

// The VAE of Wan 2.1 and Qwen-Image: one of videos, of which a picture is the first frame. Its layers are those of Stable
// Diffusion's in another order, with other norms.

/** A key that shows it, also in a file that lacks some. */
export const WAN_MARK = "decoder.middle.0.residual.0.gamma";
/** The same key in the layout of diffusers. */
export const WAN_DIFFUSERS_MARK = "decoder.mid_block.resnets.0.norm1.gamma";
/** A key of its successor, whose levels hold their layers. */
export const WAN_22_MARK = "decoder.upsamples.0.upsamples.0.residual.2.weight";
/** Layers between frames, which one frame does not pass. */
export const BETWEEN_FRAMES = ".time_conv.";

const LEVELS = 4;
/** Res blocks of each level of the encoder. */
const BLOCKS = 2;

const blockRenames = (from: string, to: string): Rename[] => [
  [`${from}residual.0.`, `${to}norm1.`],
  [`${from}residual.2.`, `${to}conv1.`],
  [`${from}residual.3.`, `${to}norm2.`],
  [`${from}residual.6.`, `${to}conv2.`],
  [`${from}shortcut.`, `${to}nin_shortcut.`],
];

/** Wan's names of the layers, which it counts through all levels of a half. */
export const WAN_RENAMES: readonly Rename[] = [
  ["conv1.", "quant_conv."],
  ["conv2.", "post_quant_conv."],
  ...(["encoder", "decoder"] as const).flatMap((half): Rename[] => {
    const [list, side, sampler, blocks] =
      half === "encoder"
        ? (["downsamples", "down", "downsample", BLOCKS] as const)
        : (["upsamples", "up", "upsample", BLOCKS + 1] as const);
    return [
      [`${half}.conv1.`, `${half}.conv_in.`],
      [`${half}.head.0.`, `${half}.norm_out.`],
      [`${half}.head.2.`, `${half}.conv_out.`],
      ...blockRenames(`${half}.middle.0.`, `${half}.mid.block_1.`),
      [`${half}.middle.1.`, `${half}.mid.attn_1.`],
      [`${half}.middle.1.proj.`, `${half}.mid.attn_1.proj_out.`],
      ...blockRenames(`${half}.middle.2.`, `${half}.mid.block_2.`),
      ...Array.from({ length: LEVELS }, (_, step): Rename[] => {
        const level = `${half}.${side}.${half === "encoder" ? step : LEVELS - 1 - step}.`;
        const at = (index: number): string => `${half}.${list}.${step * (blocks + 1) + index}.`;
        return [
          ...Array.from({ length: blocks }, (_, index) => blockRenames(at(index), `${level}block.${index}.`)).flat(),
          [`${at(blocks)}resample.1.`, `${level}${sampler}.conv.`],
        ];
      }).flat(),
    ];
  }),
];

const diffusersRenames = (from: string, to: string): Rename[] => [
  [from, to],
  [`${from}conv_shortcut.`, `${to}nin_shortcut.`],
];

/** Diffusers' names of the layers; it counts those of the encoder through all levels, as Wan does. */
export const WAN_DIFFUSERS_RENAMES: readonly Rename[] = [
  ...["encoder", "decoder"].flatMap((half): Rename[] => [
    ...[0, 1].flatMap((block) =>
      diffusersRenames(`${half}.mid_block.resnets.${block}.`, `${half}.mid.block_${block + 1}.`),
    ),
    [`${half}.mid_block.attentions.0.`, `${half}.mid.attn_1.`],
    [`${half}.mid_block.attentions.0.proj.`, `${half}.mid.attn_1.proj_out.`],
  ]),
  ...Array.from({ length: LEVELS }, (_, step): Rename[] => {
    const [down, up] = [`encoder.down.${step}.`, `decoder.up.${LEVELS - 1 - step}.`];
    const at = (index: number): string => `encoder.down_blocks.${step * (BLOCKS + 1) + index}.`;
    const blocks = Array.from({ length: BLOCKS + 1 }, (_, index) => index);
    return [
      ...blocks.slice(0, BLOCKS).flatMap((index) => diffusersRenames(at(index), `${down}block.${index}.`)),
      [`${at(BLOCKS)}resample.1.`, `${down}downsample.conv.`],
      ...blocks.flatMap((index) =>
        diffusersRenames(`decoder.up_blocks.${step}.resnets.${index}.`, `${up}block.${index}.`),
      ),
      [`decoder.up_blocks.${step}.upsamplers.0.resample.1.`, `${up}upsample.conv.`],
    ];
  }).flat(),
];

/** Kernels that pass several frames; those of attention and of other sizes see one. */
const OF_FRAMES = /(?:conv_in|conv_out|conv[12]|nin_shortcut|quant_conv)\.weight$/;

/**
 * The network with kernels of pictures: before the first frame there are zeros, so that of a kernel [O, I, k, k, k] it passes
 * only the last plane [O, I, k, k].
 */
export function ofOneFrame(network: Network): Network {
  const { graph } = network;
  const planeOf = (whole: Value, shape: readonly number[], depth: number): Value => {
    const sliced = (): Value =>
      graph.node("Slice", [whole, graph.ints([depth - 1]), graph.ints([depth]), graph.ints([2])]);
    return reshape(graph, depth === 1 ? whole : sliced(), shape);
  };
  const read =
    <Rest extends readonly unknown[]>(weight: (key: string, shape: readonly number[], ...rest: Rest) => Value) =>
    (key: string, shape: readonly number[], ...rest: Rest): Value => {
      const [outputs, inputs, depth] = shape;
      if (!OF_FRAMES.test(key)) return weight(key, shape, ...rest);
      return planeOf(weight(key, [outputs!, inputs!, depth!, ...shape.slice(2)], ...rest), shape, depth!);
    };
  return { ...network, weight: read(network.weight), lateWeight: read(network.lateWeight) };
}

/** Least length of a cell's channels. */
const LEAST_LENGTH = 1e-12;

/** The channels of each cell, a vector, at the length sqrt(C), times one number for each channel. */
export function channelNorm(network: Network, key: string, x: Value, channels: number): Value {
  const { graph } = network;
  const gamma = network.weight(`${key}.gamma`, [channels, ...(key.endsWith(".attn_1.norm") ? [1, 1] : [1, 1, 1])]);
  const factors = graph.node("Mul", [reshape(graph, gamma, [channels, 1, 1]), graph.floats([Math.sqrt(channels)], [])]);
  const length = graph.node("ReduceL2", [x, graph.ints([1])]);
  const unit = graph.node("Div", [x, graph.node("Max", [length, graph.floats([LEAST_LENGTH], [])])]);
  return graph.node("Mul", [unit, factors]);
}
