import { type ModelFamily, networkPart, withVae } from "../diffusion/family.js";
import { flowOf } from "../diffusion/sampling.js";
import { below, type ModelHeader, type Part, PartShapes, TRANSFORMER_PREFIXES } from "../recognition/part.js";
import { findTextEncoders, languageModels, textEncoderPart } from "../text-encoder/recognise.js";
import {
  BLOCK_TYPES,
  isBlockType,
  quotedName,
  type StoredWeight,
  unsupported,
  type WeightMap,
} from "../weights/stored.js";
import { buildFlux, type FluxConfig } from "./build.js";
import { AROUND, IN_DOUBLE, IN_SINGLE, OF_LINEAR1, SWAPPED, THIRDS } from "./lora.js";
import { BuiltFlux } from "./model.js";
import { HEAD_STEP } from "./patches.js";

/** Flux.1 has 19 and 38. */
const MOST_BLOCKS = 256;
/** Numbers of a patch of 2 x 2 cells of 16 channels. */
const PATCH = 64;
/** Patches that models take: the latent, with a picture beside it (Control), with a picture and a mask (Fill). */
const INPUTS = [PATCH, 2 * PATCH, 6 * PATCH];
const CONTEXT_OF_LONGCAT = 3584;
const EXPECTED = "a Flux.1 model";

const ROOTS = [
  "img_in.",
  "txt_in.",
  "time_in.",
  "guidance_in.",
  "vector_in.",
  "double_blocks.",
  "single_blocks.",
  "final_layer.",
  "transformer_blocks.",
  "single_transformer_blocks.",
];
const FIRST = "double_blocks.0.";
const NORM = `${FIRST}img_attn.norm.key_norm.`;
const NORMS = ["scale", "weight"] as const;
/** Beginnings of keys that relatives have beside such blocks. */
const RELATIVES = [
  ["txt_in.individual_token_refiner", "a Hunyuan Video model"],
  ["latent_in.weight", "a Hunyuan 3D model"],
  ["nerf_blocks", "a Chroma Radiance model"],
  ["distilled_guidance_layer.", "a Chroma model"],
  ["double_stream_modulation_img.", "a Flux.2 model"],
  [`${FIRST}img_mlp.gate_proj.`, "an Ovis model"],
] as const;

/** Flux.1 dev, schnell and those that take pictures. */
export const flux: ModelFamily = {
  has: (weights) => findFlux(weights) !== undefined,
  *parts(file) {
    const part = fluxPart(file, findFlux(file.weights)!);
    yield;
    const clips = findTextEncoders(file.weights).map((encoder) => textEncoderPart(file, encoder, "l"));
    const { inputs, hasGuidance } = part.config;
    const family = hasGuidance ? "flux" : "flux-schnell";
    return withVae(file, {
      family,
      words: hasGuidance ? "Flux.1 dev" : "Flux.1 schnell",
      sampling: () => flowOf(family, "Flux"),
      network: networkPart("Flux transformer", part, BuiltFlux),
      textEncoders: [
        ...clips.map((clip) => ({ kind: "clip", part: clip }) as const),
        ...languageModels(file).filter(({ kind }) => kind === "t5"),
      ],
      encoderCount: 2,
      inpaint: inputs === INPUTS[2],
    });
  },
};

/**
 * Prefix of the transformer of a file that has Flux's blocks; undefined if there is none. One that lacks weights is found
 * too, and so are relatives.
 *
 * @internal
 */
export const findFlux = (weights: WeightMap): string | undefined =>
  TRANSFORMER_PREFIXES.find((prefix) =>
    [...NORMS.map((norm) => NORM + norm), DIFFUSERS_MARK].some((mark) => weights.has(prefix + mark)),
  );

/**
 * Sizes and weights of a Flux.1 transformer, checked to hold every weight that its builder needs. Throws model.invalid,
 * and model.unsupported for its relatives.
 *
 * @internal
 */
export function fluxPart(file: ModelHeader, prefix: string): Part<FluxConfig> {
  const weights = below(file.weights, prefix);
  const refuse = ({ key, dtype, shape }: StoredWeight, expected: string): Error =>
    unsupported(file.name, `${quotedName(key)} ${expected}`, `${dtype} [${shape.slice(0, 8).join(", ")}]`);
  const shapes = weights.has(DIFFUSERS_MARK)
    ? new PartShapes(file, ownLayout(weights, refuse), (key) => prefix + diffusersKey(key))
    : new PartShapes(file, weights, (key) => prefix + key);
  const relative = relativeOf(weights);
  if (relative !== undefined) throw unsupported(file.name, EXPECTED, relative);
  const config = fluxConfig(shapes);
  return { config, weights: shapes.check((network) => buildFlux(network, config), ROOTS, EXPECTED) };
}

/** Name of the relative that has one of these keys. */
function relativeOf(weights: WeightMap): string | undefined {
  const keys = [...weights.keys()];
  const relative = RELATIVES.find(([beginning]) => keys.some((key) => key.startsWith(beginning)));
  return relative?.[1];
}

function fluxConfig(shapes: PartShapes): FluxConfig {
  const { name } = shapes.file;
  const [width, inputs] = shapes.sides("img_in.weight", 2) as [number, number];
  const [, contextWidth] = shapes.sides("txt_in.weight", 2) as [number, number];
  if (contextWidth === CONTEXT_OF_LONGCAT) throw unsupported(name, EXPECTED, "a LongCat model");
  const [outputs] = shapes.sides("final_layer.linear.weight", 2) as [number];
  if (!INPUTS.includes(inputs) || outputs !== PATCH)
    throw unsupported(
      name,
      `${EXPECTED} that takes ${INPUTS.join(", ")} numbers of a patch and makes ${PATCH}`,
      `one that takes ${inputs} and makes ${outputs}`,
    );
  const norms = shapes.has(`${NORM}scale`) ? "scale" : "weight";
  const [headSize] = shapes.sides(NORM + norms, 1) as [number];
  if (headSize % HEAD_STEP !== 0 || width % headSize !== 0)
    throw shapes.invalid(`heads of a multiple of ${HEAD_STEP} numbers that divide ${width}`, `${headSize}`);
  const [, pooledWidth] = shapes.sides("vector_in.in_layer.weight", 2) as [number, number];
  const [mlp] = shapes.sides(`${FIRST}img_mlp.0.weight`, 2) as [number];
  return {
    inputs,
    outputs,
    width,
    heads: width / headSize,
    headSize,
    mlp,
    norms,
    contextWidth,
    pooledWidth,
    doubleBlocks: shapes.count("double_blocks.", MOST_BLOCKS),
    singleBlocks: shapes.count("single_blocks.", MOST_BLOCKS),
    hasGuidance: shapes.has("guidance_in.in_layer.weight"),
  };
}

// A Flux transformer in the layout of diffusers, whose queries, keys and values are layers of their own.

const DOUBLE = ["double_blocks", "transformer_blocks"] as const;
const SINGLE = ["single_blocks", "single_transformer_blocks"] as const;
const BLOCK = /^(single_)?transformer_blocks\.(\d{1,4})\.(.+)\.(weight|bias)$/;
const OTHER = /^(.+)\.(weight|bias)$/;

/** Layers of Flux by those of diffusers: in a block of two streams, in one of the joint stream, and around the blocks. */
const OF_DOUBLE = inverse(IN_DOUBLE);
const OF_SINGLE = inverse(IN_SINGLE);
const OF_AROUND = inverse(AROUND);
/** Layers of Flux that are several in diffusers. */
const JOINED: readonly (readonly [isSingle: boolean, layer: string, names: readonly string[]])[] = [
  ...Object.entries(THIRDS).map(([layer, names]) => [false, layer, names] as const),
  [true, "linear1", OF_LINEAR1],
];

/** A key that only a Flux.1 transformer in that layout has. */
const DIFFUSERS_MARK = "single_transformer_blocks.0.norm.linear.weight";

/** Makes the error of a weight that cannot take its place. */
type Refuse = (weight: StoredWeight, expected: string) => Error;

// Kept apart or joined, the layers are one weight with parts, so builder, LoRAs and checks see one layout.
/**
 * The weights under the keys of Flux; those without a counterpart stay. Throws what `refuse` makes of one whose halves
 * have to change places and cannot, and of one whose place is taken.
 */
function ownLayout(weights: WeightMap, refuse: Refuse): WeightMap {
  const all = new Map<string, StoredWeight>();
  const place = (key: string, weight: StoredWeight): void => {
    if (all.has(key)) throw refuse(weight, "in one layout with the others");
    all.set(key, weight);
  };
  for (const [key, weight] of weights) {
    const [, single, number, layer, kind] = BLOCK.exec(key) ?? [];
    const [, around = "", ending] = number === undefined ? (OTHER.exec(key) ?? []) : [];
    const block = single === undefined ? DOUBLE : SINGLE;
    const wholeOf = JOINED.find(([isSingle, , names]) => isSingle === (block === SINGLE) && names[0] === layer);
    const own = (single === undefined ? OF_DOUBLE : OF_SINGLE).get(layer ?? "");
    if (wholeOf !== undefined) {
      const [, whole, names] = wholeOf;
      const parts = names.flatMap((name) => weights.get(`${block[1]}.${number}.${name}.${kind}`) ?? []);
      place(`${block[0]}.${number}.${whole}.${kind}`, joinedRows(parts.length === names.length ? parts : [weight]));
    } else if (own !== undefined) place(`${block[0]}.${number}.${own}.${kind}`, weight);
    else if (around === SWAPPED.name) place(`${SWAPPED.module}.${ending}`, withSwappedHalves(weight, refuse));
    else if (OF_AROUND.has(around)) place(`${OF_AROUND.get(around)}.${ending}`, weight);
    else if (!isPartOfWhole(layer, single !== undefined)) place(key, weight);
  }
  return all;
}

/** Key in that layout, of the first part of a whole. */
function diffusersKey(key: string): string {
  const [, kind, number, layer = "", ending] = /^(double|single)_blocks\.(\d+)\.(.+)\.(\w+)$/.exec(key) ?? [];
  const [, around = "", last] = kind === undefined ? (OTHER.exec(key) ?? []) : [];
  if (around === SWAPPED.module) return `${SWAPPED.name}.${last}`;
  const names: Readonly<Record<string, string>> =
    kind === undefined ? AROUND : kind === "single" ? IN_SINGLE : IN_DOUBLE;
  const whole = JOINED.find(([isSingle, own]) => isSingle === (kind === "single") && own === layer);
  const name = whole?.[2][0] ?? names[kind === undefined ? around : layer];
  if (name === undefined) return key;
  if (kind === undefined) return `${name}.${last}`;
  return `${(kind === "single" ? SINGLE : DOUBLE)[1]}.${number}.${name}.${ending === "scale" ? "weight" : ending}`;
}

const isPartOfWhole = (layer: string | undefined, inSingle: boolean): boolean =>
  JOINED.some(([isSingle, , names]) => isSingle === inSingle && layer !== undefined && names.includes(layer));

/** Weights of as many columns, whose rows follow each other in one. */
function joinedRows(parts: readonly StoredWeight[]): StoredWeight {
  const [first] = parts as [StoredWeight];
  const rows = parts.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
  const isWhole = parts.every(
    ({ shape }) =>
      shape.length === first.shape.length && shape.slice(1).every((side, axis) => side === first.shape[axis + 1]),
  );
  return parts.length > 1 && isWhole ? { ...first, shape: [rows, ...first.shape.slice(1)], parts } : first;
}

/** The weight with its second half of rows first. */
function withSwappedHalves(weight: StoredWeight, refuse: Refuse): StoredWeight {
  const { shape, from, to, dtype, factor, packing } = weight;
  const [rows = 0, ...others] = shape;
  const values = others.reduce((product, side) => product * side, rows / 2);
  const unit = isBlockType(dtype) ? BLOCK_TYPES[dtype].values : 1;
  const hasOneFactor = factor === undefined || factor.shape.every((side) => side === 1);
  if (rows % 2 !== 0 || values % unit !== 0 || !hasOneFactor || packing !== undefined)
    throw refuse(weight, "of two halves, each of whole rows");
  const half = { ...weight, shape: [rows / 2, ...others] };
  const middle = (from + to) / 2;
  return {
    ...weight,
    parts: [
      { ...half, from: middle },
      { ...half, to: middle },
    ],
  };
}

function inverse(names: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(names).map(([own, name]) => [name, own]));
}
