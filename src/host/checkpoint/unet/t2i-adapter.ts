import { channelOf, channelsFirst, firstChannels } from "../../../tensor/channels.js";
import { weightedSum } from "../../../tensor/ops.js";
import { resizeImage } from "../../../tensor/resize.js";
import { fourSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { ControlNet } from "../../types.js";
import { add, conv, FLOAT_BYTES } from "../networks/layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import { type ModelHeader, type Part, PartShapes, type Rename, renamed } from "../recognition/part.js";
import type { ModelPart } from "../session/model-part.js";
import type { Network } from "../weights/network.js";
import { unsupported, type WeightMap } from "../weights/stored.js";

/** Structure of a T2I-Adapter, which makes features of a picture once for all steps. */
export interface T2iConfig {
  readonly kind: "full" | "light";
  /** Side of the squares of pixels that become channels: 8 for Stable Diffusion 1, 16 for SDXL. */
  readonly unshuffle: 8 | 16;
  /** Channels of its picture, which is grey or in colours. */
  readonly colours: 1 | 3;
  /** Channels after the first convolution of a full one. */
  readonly first: number;
  /** Kernel of the second convolution of a block. */
  readonly kernel: 1 | 3;
  /** Sizes of each level. */
  readonly levels: readonly T2iLevel[];
}

interface T2iLevel {
  readonly channels: number;
  /** Channels inside a light one. */
  readonly inner: number;
  /** Whether the level begins with a change of channels. */
  readonly hasInput: boolean;
}

const LEVELS = 4;
const BLOCKS = 2;
const LIGHT_BLOCKS = 4;
const EXPECTED = "a T2I-Adapter of Stable Diffusion 1 or XL";
const ROOTS = ["conv_in.", "body."];
/** Pixels along a side of a latent's cell. */
const CELL = 8;
const DIFFUSERS_PREFIX = "adapter.";

/** Blocks of a UNet whose outputs the levels are added to. */
const TARGETS = {
  8: ["input_blocks.2", "input_blocks.5", "input_blocks.8", "input_blocks.11"],
  16: ["input_blocks.3", "input_blocks.5", "input_blocks.8", "middle_block"],
} as const;
/** Levels that halve the picture first. */
const HALVED: Readonly<Record<8 | 16, readonly number[]>> = { 8: [1, 2, 3], 16: [2] };

/** Keys of blocks that the outputs of an adapter are added after, in the order of its levels. */
export const targetsOf = ({ unshuffle }: T2iConfig): readonly string[] => TARGETS[unshuffle];

/** A T2I-Adapter of a file; models of the same host add its features. */
export class CheckpointT2iAdapter implements ControlNet {
  constructor(readonly part: ModelPart<T2iConfig>) {}

  /** The adapter itself: it has one kind of picture. */
  ofType(): ControlNet {
    return this;
  }
}

/** Bytes of a run beside the weights, for each value of the cells: four pictures of the widest first level. */
export const t2iWork = ({ unshuffle, colours, levels }: T2iConfig): { readonly cells: number } => ({
  cells: (FLOAT_BYTES * 4 * levels[0]!.channels) / (colours * unshuffle * unshuffle),
});

/** Whether a file has a T2I-Adapter, complete or not. */
export const hasT2iAdapter = (weights: WeightMap): boolean =>
  weights.has("body.0.in_conv.weight") ||
  weights.has("body.0.block1.weight") ||
  weights.has(`${DIFFUSERS_PREFIX}conv_in.weight`) ||
  weights.has(`${DIFFUSERS_PREFIX}body.0.in_conv.weight`);

/** Sizes and weights of a T2I-Adapter. Throws model.invalid and model.unsupported. */
export function t2iAdapterPart(file: ModelHeader): Part<T2iConfig> {
  const { weights, nameInFile } = underLdmNames(file.weights);
  const shapes = new PartShapes(file, weights, nameInFile);
  const kind = shapes.has("conv_in.weight") ? "full" : "light";
  const [first, inputs] = shapes.sides(kind === "full" ? "conv_in.weight" : "body.0.in_conv.weight", 4) as [
    number,
    number,
  ];
  const sizes = ([8, 16] as const).flatMap((unshuffle) =>
    ([1, 3] as const).map((colours) => ({ unshuffle, colours, inputs: colours * unshuffle * unshuffle })),
  );
  const size = sizes.find((each) => each.inputs === inputs);
  if (size === undefined) throw unsupported(file.name, EXPECTED, `one with ${inputs} input channels`);
  const { unshuffle, colours } = size;
  const levels = Array.from({ length: LEVELS }, (_, level) => levelOf(shapes, kind, level));
  const block = kind === "full" ? "body.0.block2.weight" : "body.0.body.0.block2.weight";
  const kernel = shapes.sides(block, 4)[2] === 1 ? 1 : 3;
  const config: T2iConfig = { kind, unshuffle, colours, first, kernel, levels };
  return { config, weights: shapes.check((network) => buildT2iAdapter(network, config), ROOTS, EXPECTED) };
}

function levelOf(shapes: PartShapes, kind: T2iConfig["kind"], level: number): T2iLevel {
  if (kind === "light") {
    const [channels, inner] = shapes.sides(`body.${level}.out_conv.weight`, 4) as [number, number];
    return { channels, inner, hasInput: true };
  }
  const [channels] = shapes.sides(`body.${BLOCKS * level}.block1.weight`, 4) as [number];
  return { channels, inner: channels, hasInput: shapes.has(`body.${BLOCKS * level}.in_conv.weight`) };
}

/** The weights under the names of the original code; diffusers counts the blocks of each level. */
function underLdmNames(weights: WeightMap): ReturnType<typeof renamed> {
  const isDiffusers = [...weights.keys()].some((key) => key.startsWith(DIFFUSERS_PREFIX));
  if (!isDiffusers) return renamed(weights, [], "");
  const isLight = !weights.has(`${DIFFUSERS_PREFIX}conv_in.weight`);
  const renames: Rename[] = [[`${DIFFUSERS_PREFIX}conv_in.`, "conv_in."]];
  for (let level = 0; level < LEVELS; level++) {
    const from = `${DIFFUSERS_PREFIX}body.${level}.`;
    if (isLight) {
      for (const part of ["in_conv", "out_conv"]) renames.push([`${from}${part}.`, `body.${level}.${part}.`]);
      for (let block = 0; block < LIGHT_BLOCKS; block++)
        renames.push([`${from}resnets.${block}.`, `body.${level}.body.${block}.`]);
      continue;
    }
    renames.push([`${from}in_conv.`, `body.${BLOCKS * level}.in_conv.`]);
    for (let block = 0; block < BLOCKS; block++)
      renames.push([`${from}resnets.${block}.`, `body.${BLOCKS * level + block}.`]);
  }
  return renamed(weights, renames, "");
}

/**
 * Writes a T2I-Adapter. Input: cells [hints, colours · unshuffle², h, w], as t2iCells makes them. Outputs: `level_N`, each
 * [hints, channels, h', w'], for the blocks of targetsOf.
 */
export function buildT2iAdapter(network: Network, config: T2iConfig): void {
  const { graph } = network;
  const { kind, unshuffle, colours, first, kernel, levels } = config;
  const inputs = colours * unshuffle * unshuffle;
  let x = graph.input("cells", "float", ["hints", inputs, "h", "w"]);
  let channels = inputs;
  if (kind === "full") {
    x = conv(network, "conv_in", x, [inputs, first], { kernel: 3 });
    channels = first;
  }
  for (const [index, level] of levels.entries()) {
    if (HALVED[unshuffle].includes(index)) x = halved(graph, x);
    const write = kind === "full" ? fullLevel : lightLevel;
    x = write(network, index, x, channels, { ...level, kernel });
    channels = level.channels;
    graph.output(x, `level_${index}`, "float", ["hints", channels, `h_${index}`, `w_${index}`]);
  }
}

type LevelOptions = T2iLevel & Pick<T2iConfig, "kernel">;

function fullLevel(
  network: Network,
  level: number,
  input: Value,
  inputs: number,
  { channels, hasInput, kernel }: LevelOptions,
): Value {
  const at = `body.${BLOCKS * level}`;
  let x = hasInput ? conv(network, `${at}.in_conv`, input, [inputs, channels], { kernel }) : input;
  for (let block = 0; block < BLOCKS; block++)
    x = residual(network, `body.${BLOCKS * level + block}`, x, channels, kernel);
  return x;
}

function lightLevel(
  network: Network,
  level: number,
  input: Value,
  inputs: number,
  { channels, inner, kernel }: LevelOptions,
): Value {
  const at = `body.${level}`;
  let x = conv(network, `${at}.in_conv`, input, [inputs, inner], { kernel: 1 });
  for (let block = 0; block < LIGHT_BLOCKS; block++) x = residual(network, `${at}.body.${block}`, x, inner, kernel);
  return conv(network, `${at}.out_conv`, x, [inner, channels], { kernel: 1 });
}

/** x + block2(ReLU(block1(x))). */
function residual(network: Network, key: string, x: Value, channels: number, kernel: 1 | 3): Value {
  const { graph } = network;
  const inner = graph.node("Relu", [conv(network, `${key}.block1`, x, [channels, channels], { kernel: 3 })]);
  return add(graph, x, conv(network, `${key}.block2`, inner, [channels, channels], { kernel }));
}

/** Means of squares of two cells; odd sides get zeros before and after, which count. */
function halved(graph: OnnxGraph, x: Value): Value {
  const odd = graph.node("Mod", [graph.node("Shape", [x], { start: { int: 2 } }), graph.ints([2, 2])]);
  const none = graph.ints([0, 0]);
  const pads = graph.node("Concat", [none, odd, none, odd], { axis: { int: 0 } });
  const padded = graph.node("Pad", [x, pads]);
  return graph.node("AveragePool", [padded], { kernel_shape: { ints: [2, 2] }, strides: { ints: [2, 2] } });
}

/** The cells of hints [n, H, W, C] in 0…1 for a latent of these sides, [n, colours · unshuffle², h, w]. */
export function t2iCells(
  { unshuffle: side, colours }: T2iConfig,
  hint: Tensor,
  [rows, columns]: readonly [number, number],
): Tensor {
  fourSides("T2I-Adapter", hint, "[B, H, W, C]");
  const [height, width] = [rows, columns].map((cells) => Math.ceil((cells * CELL) / side) * side) as [number, number];
  const sized = resizeImage(firstChannels(hint, 3), { method: "nearest-exact", height, width, crop: "center" });
  const planes = channelsFirst(colours === 1 ? grey(sized) : sized);
  const count = planes.shape[0]!;
  const [down, across] = [height / side, width / side];
  const out = Tensor.unfilled([count, colours * side * side, down, across]);
  let to = 0;
  for (let plane = 0; plane < count * colours; plane++)
    for (let cell = 0; cell < side * side; cell++)
      for (let y = 0; y < down; y++) {
        const row = plane * height + y * side + Math.floor(cell / side);
        for (let x = 0; x < across; x++) out.data[to++] = planes.data[row * width + x * side + (cell % side)]!;
      }
  return out;
}

/** The mean of three colours, [n, H, W, 1]. */
function grey(image: Tensor): Tensor {
  const mean = weightedSum([0, 1, 2].map((colour) => [1 / 3, channelOf(image, colour)] as const));
  return mean.reshape([...mean.shape, 1]);
}
