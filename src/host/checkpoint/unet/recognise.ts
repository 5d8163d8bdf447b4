import {
  below,
  type ModelHeader,
  type Part,
  PartShapes,
  type Rename,
  type RenamedWeights,
  renamed,
} from "../recognition/part.js";
import { levelsOfDiffusers, unetModules } from "../weights/diffusers-names.js";
import type { WeightMap } from "../weights/stored.js";
import { buildUnet, type UnetBlock, type UnetConfig, type UnetEncoderConfig } from "./build.js";

/** SD 1 has 12 blocks on each side, networks with more levels up to 20. */
const MOST_BLOCKS = 64;
/** SDXL has 10. */
const MOST_DEPTH = 64;
/** Channels of every normalised layer are a multiple of it. */
const GROUPS = 32;
/** SD 1 has as many heads everywhere, the families after it heads of one size. */
const SD1_HEADS = 8;
const HEAD_SIZE = 64;

/** Roots of a UNet's layers. */
const ROOTS = ["time_embed.", "label_emb.", "input_blocks.", "middle_block.", "output_blocks.", "out."];

/** Prefixes of a UNet's keys, those of whole checkpoints first. */
const PREFIXES = ["model.diffusion_model.", "diffusion_model.", "model.", "unet.", ""];

/** Keys of a UNet's last layer, which a control net does not have: LDM's name and diffusers'. */
const LDM_MARKS = ["input_blocks.0.0.weight", "output_blocks.0.0.in_layers.0.weight", "out.2.weight"];
const DIFFUSERS_MARKS = ["down_blocks.0.resnets.0.norm1.weight", "up_blocks.0.resnets.0.norm1.weight"];

/** The weights of a UNet under LDM keys. */
export interface FoundUnet extends RenamedWeights {
  readonly prefix: string;
}

/** Whether a UNet is among the weights, complete or not. */
export const hasUnet = (weights: WeightMap): boolean =>
  PREFIXES.some((prefix) => isLdm(weights, prefix) || isDiffusers(weights, prefix));

const isLdm = (weights: WeightMap, prefix: string): boolean =>
  LDM_MARKS.filter((key) => weights.has(prefix + key)).length >= 2;

const isDiffusers = (weights: WeightMap, prefix: string): boolean =>
  DIFFUSERS_MARKS.every((key) => weights.has(prefix + key));

/** The UNet of a file; undefined if there is none. One that lacks weights is found too. */
export function findUnet({ weights }: Pick<ModelHeader, "weights">): FoundUnet | undefined {
  const prefix = PREFIXES.find((each) => isLdm(weights, each) || isDiffusers(weights, each));
  if (prefix === undefined) return undefined;
  const own = below(weights, prefix);
  return { prefix, ...renamed(own, isLdm(weights, prefix) ? [] : diffusersRenames(own), prefix) };
}

/** Beginnings of diffusers' keys of a UNet or ControlNet with those of LDM. */
export const diffusersRenames = (weights: WeightMap): readonly Rename[] =>
  unetModules(levelsOfDiffusers(weights.keys())).map(([ldm, diffusers]) => [`${diffusers}.`, `${ldm}.`]);

/**
 * Sizes and weights of a UNet, checked to hold every weight that its builder needs. Throws model.invalid, and
 * model.unsupported for further layers.
 */
export function unetPart(file: ModelHeader, { weights, nameInFile }: FoundUnet, expected: string): Part<UnetConfig> {
  const shapes = new PartShapes(file, weights, nameInFile);
  const config = unetConfig(shapes);
  return { config, weights: shapes.check((network) => buildUnet(network, config), ROOTS, expected) };
}

function unetConfig(shapes: PartShapes): UnetConfig {
  const encoder = unetEncoderConfig(shapes);
  const count = shapes.count("output_blocks.", MOST_BLOCKS);
  const output = Array.from({ length: count }, (_, index) => outputBlock(shapes, index, encoder));
  checkLevels(shapes, encoder.input, output);
  return { ...encoder, outChannels: shapes.sides("out.2.weight", 4)[0]!, output };
}

/** Sizes of the way down and the middle. Throws model.invalid. */
export function unetEncoderConfig(shapes: PartShapes): UnetEncoderConfig {
  const [modelChannels, inChannels] = shapes.sides("input_blocks.0.0.weight", 4) as [number, number];
  checkChannels(shapes, "input_blocks.0", modelChannels, 1);
  const labelDim = shapes.has("label_emb.0.0.weight") ? shapes.sides("label_emb.0.0.weight", 2)[1] : undefined;
  const count = shapes.count("input_blocks.", MOST_BLOCKS);
  const first = firstTransformer(shapes, count);
  const linearProjection = shapes.weights.get(`${first}.proj_in.weight`)?.shape.length === 2;
  const contextDim = shapes.sides(`${first}.transformer_blocks.0.attn2.to_k.weight`, 2)[1]!;
  const heads: UnetConfig["heads"] =
    linearProjection || labelDim !== undefined ? { size: HEAD_SIZE } : { count: SD1_HEADS };
  const multiple = "size" in heads ? heads.size : heads.count;
  const input: UnetBlock[] = [{ kind: "conv", channels: modelChannels, depth: 0 }];
  for (let index = 1; index < count; index++)
    input.push(inputBlock(shapes, `input_blocks.${index}`, multiple, input[index - 1]!.channels));
  const hasMiddle = shapes.count("middle_block.", MOST_BLOCKS) > 0;
  const middle = hasMiddle ? resBlock(shapes, "middle_block", multiple) : undefined;
  return { inChannels, modelChannels, contextDim, linearProjection, labelDim, heads, input, middle };
}

/** Key of the first transformer of the input side, or of the middle's if there is none. */
function firstTransformer(shapes: PartShapes, blocks: number): string {
  for (let index = 1; index < blocks; index++) {
    const at = `input_blocks.${index}.1`;
    if (shapes.count(`${at}.transformer_blocks.`, MOST_DEPTH) > 0) return at;
  }
  return "middle_block.1";
}

function inputBlock(shapes: PartShapes, at: string, multiple: number, before: number): UnetBlock {
  if (shapes.has(`${at}.0.op.weight`)) return { kind: "down", channels: before, depth: 0 };
  return resBlock(shapes, at, multiple);
}

function outputBlock(shapes: PartShapes, index: number, { heads }: UnetEncoderConfig): UnetConfig["output"][number] {
  const at = `output_blocks.${index}`;
  const block = resBlock(shapes, at, "size" in heads ? heads.size : heads.count);
  return { ...block, upsample: shapes.has(`${at}.1.conv.weight`) || shapes.has(`${at}.2.conv.weight`) };
}

function resBlock(shapes: PartShapes, at: string, multiple: number): UnetBlock {
  const channels = shapes.sides(`${at}.0.out_layers.3.weight`, 4)[0]!;
  const depth = shapes.count(`${at}.1.transformer_blocks.`, MOST_DEPTH);
  checkChannels(shapes, at, channels, depth > 0 ? multiple : 1);
  return { kind: "res", channels, depth };
}

function checkChannels(shapes: PartShapes, at: string, channels: number, multiple: number): void {
  for (const divisor of [GROUPS, multiple])
    if (channels % divisor !== 0) throw shapes.invalid(`a multiple of ${divisor} as channels of ${at}`, `${channels}`);
}

/** Every output block takes the skip of one input block, at that block's size. */
function checkLevels(shapes: PartShapes, input: readonly UnetBlock[], output: UnetConfig["output"]): void {
  if (input.length !== output.length)
    throw shapes.invalid(`as many output_blocks as input_blocks, ${input.length}`, `${output.length}`);
  let level = 0;
  const skips = input.map(({ kind }) => (kind === "down" ? ++level : level));
  for (const [index, { upsample }] of output.entries()) {
    const from = skips.length - 1 - index;
    if (skips[from] !== level)
      throw shapes.invalid(
        `output_blocks.${index} at level ${skips[from]}, that of input_blocks.${from}`,
        `one at level ${level}`,
      );
    if (upsample) level--;
  }
}
