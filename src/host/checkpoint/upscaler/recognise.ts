import {
  below,
  type ModelHeader,
  type Part,
  PartShapes,
  type Rename,
  renamed,
  unwrappedFile,
} from "../recognition/part.js";
import { kindInWords } from "../recognition/refusal.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import { buildUpscaler, type UpscalerConfig } from "./build.js";

const EXPECTED = "an upscale model of ESRGAN's or RealESRGAN's kinds";
const COLOURS = 3;
/** ESRGAN has 23. */
const MOST_BLOCKS = 64;
/** Compact networks have up to 34 convolutions, each with an activation. */
const MOST_LAYERS = 256;
/** Doublings of a factor of 16. */
const MOST_DOUBLINGS = 4;
const LARGEST_SCALE = 16;
/** Squares whose pixels RealESRGAN makes channels. */
const SQUARES = [1, 2, 4];

/** Beginnings of keys that training programs leave. */
const PREFIXES = ["", "params_ema.", "params."];
const ROOTS = ["conv_", "body.", "model.", "RRDB_trunk."];
/** Keys of the first block, by which each way of naming is known. */
const OLD = "model.1.sub.0.RDB1.conv1.0.weight";
const ESRGAN = "RRDB_trunk.0.RDB1.conv1.weight";
const BASICSR = "body.0.rdb1.conv1.weight";

/** Sizes and weights of an upscaler under BasicSR's keys. Throws model.unsupported for other networks, model.invalid. */
export function upscalerPart(whole: ModelHeader): Part<UpscalerConfig> {
  const isKnown = (weights: WeightMap): boolean =>
    PREFIXES.some((prefix) => renamesOf(below(weights, prefix)) !== undefined);
  const file = unwrappedFile(whole, isKnown);
  for (const prefix of PREFIXES) {
    const own = prefix === "" ? file.weights : below(file.weights, prefix);
    const renames = renamesOf(own);
    if (renames === undefined) continue;
    const { weights, nameInFile } = renamed(own, renames, prefix);
    const shapes = new PartShapes(file, weights, nameInFile);
    const config = weights.has(BASICSR) ? rrdbConfig(shapes) : compactConfig(shapes);
    return { config, weights: shapes.check((network) => buildUpscaler(network, config), ROOTS, EXPECTED) };
  }
  throw unsupported(file.name, EXPECTED, kindInWords(file.weights));
}

function renamesOf(weights: WeightMap): readonly Rename[] | undefined {
  if (weights.has(OLD)) return oldRenames(weights);
  if (weights.has(ESRGAN)) return ESRGAN_RENAMES;
  // a compact network's second layer is an activation
  return weights.has(BASICSR) || weights.get("body.1.weight")?.shape.length === 1 ? [] : undefined;
}

function rrdbConfig(shapes: PartShapes): UpscalerConfig {
  const [channels, inputs] = shapes.sides("conv_first.weight", 4) as [number, number];
  const [growth] = shapes.sides(BASICSR, 4) as [number];
  const blocks = shapes.count("body.", MOST_BLOCKS);
  // numbered from 1
  const doublings = Math.max(0, shapes.count("conv_up", MOST_DOUBLINGS + 1) - 1);
  const unshuffle = SQUARES.find((side) => COLOURS * side * side === inputs);
  const scale = 2 ** doublings / (unshuffle ?? 1);
  if (unshuffle === undefined || scale < 1)
    throw unsupported(shapes.file.name, `${EXPECTED} for colour pictures`, `one with ${inputs} input channels`);
  return { kind: "rrdb", channels, growth, blocks, doublings, unshuffle, scale };
}

function compactConfig(shapes: PartShapes): UpscalerConfig {
  const [channels] = shapes.sides("body.0.weight", 4) as [number];
  const last = shapes.count("body.", MOST_LAYERS) - 1;
  const [outputs] = shapes.sides(`body.${last}.weight`, 4) as [number];
  const scale = Math.sqrt(outputs / COLOURS);
  if (!Number.isInteger(scale) || scale > LARGEST_SCALE)
    throw shapes.invalid(`three times a square as channels of body.${last}`, `${outputs}`);
  return { kind: "compact", channels, convolutions: last / 2 - 1, scale };
}

/** Names of the ESRGAN project. */
const ESRGAN_RENAMES: readonly Rename[] = [
  ...blockRenames("RRDB_trunk.", "RDB", ""),
  ["trunk_conv.", "conv_body."],
  ["upconv1.", "conv_up1."],
  ["upconv2.", "conv_up2."],
  ["HRconv.", "conv_hr."],
];

/** Names of its first version, where layers after the blocks are numbered: each doubling, then the last two. */
function oldRenames(weights: WeightMap): readonly Rename[] {
  const after: number[] = [];
  for (let number = 2; number < MOST_LAYERS; number++) if (weights.has(`model.${number}.weight`)) after.push(number);
  const doublings = after.length - 2;
  const trunk = Array.from({ length: MOST_BLOCKS + 1 }, (_, n) => n).find((n) =>
    weights.has(`model.1.sub.${n}.weight`),
  );
  return [
    ["model.0.", "conv_first."],
    ...blockRenames("model.1.sub.", "RDB", "0."),
    [`model.1.sub.${trunk ?? "N"}.`, "conv_body."],
    ...after.map((number, index): Rename => {
      if (index < doublings) return [`model.${number}.`, `conv_up${index + 1}.`];
      return [`model.${number}.`, index === doublings ? "conv_hr." : "conv_last."];
    }),
  ];
}

function blockRenames(from: string, part: string, end: string): Rename[] {
  const renames: Rename[] = [];
  for (let block = 0; block < MOST_BLOCKS; block++)
    for (let index = 1; index <= 3; index++)
      for (let layer = 1; layer <= 5; layer++)
        renames.push([
          `${from}${block}.${part}${index}.conv${layer}.${end}`,
          `body.${block}.rdb${index}.conv${layer}.`,
        ]);
  return renames;
}
