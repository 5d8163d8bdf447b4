import { below, type ModelHeader, type Part, PartShapes } from "../recognition/part.js";
import { kindInWords, OWN_FAMILIES } from "../recognition/refusal.js";
import type { Network } from "../weights/network.js";
import { invalid, type StoredWeight, unsupported, type WeightMap } from "../weights/stored.js";
import { buildTextEncoder, type TextEncoderConfig } from "./build.js";
import { type QwenVisionConfig, qwenVisionPart } from "./qwen-vision.js";
import { findQwen3, type Qwen3Config, qwen3Part } from "./qwen3.js";
import { findT5, type T5Config, t5Part } from "./t5.js";

/** A text encoder: one of CLIP's, or a larger model. */
export type TextPart =
  | { readonly kind: "clip"; readonly part: Part<TextEncoderConfig> }
  | { readonly kind: "qwen3"; readonly part: Part<Qwen3Config> }
  | { readonly kind: "qwen2.5-vl"; readonly part: Part<Qwen3Config>; readonly tower?: Part<QwenVisionConfig> }
  | { readonly kind: "t5"; readonly part: Part<T5Config> };

/** CLIP's encoders by their size, and larger models by their kind. */
export type EncoderName = TextEncoderConfig["name"] | Exclude<TextPart["kind"], "clip">;

export const encoderName = ({ kind, part }: TextPart): EncoderName => (kind === "clip" ? part.config.name : kind);

/** A family of Stable Diffusion, whose text encoders are CLIP's. */
export type StableDiffusionFamily = "sd1" | "sd2" | "sdxl" | "sdxl-refiner";

export type TextEncoderName = TextEncoderConfig["name"];
type Layout = TextEncoderConfig["layout"];

/** A text encoder of a file: where its keys begin. */
export interface FoundEncoder {
  readonly layout: Layout;
  readonly prefix: string;
}

const HEAD_SIZE = 64;
/** bigG has 32. */
const MOST_LAYERS = 64;
/** Diffusers' files lack the last, which SD 2 does not use. */
const LAYERS_OF_H = 24;
/** Ids up to the end token, 49407. */
const FEWEST_TOKENS = 49408;
const POSITIONS = 77;

/** Key of the token table in each layout. */
export const TOKEN_TABLES: Readonly<Record<Layout, string>> = {
  hf: "embeddings.token_embedding.weight",
  openclip: "token_embedding.weight",
};

/** Keys that show an encoder, so that one is found that lacks some. */
const MARKS: Readonly<Record<Layout, readonly string[]>> = {
  hf: [TOKEN_TABLES.hf, "encoder.layers.0.layer_norm1.weight"],
  openclip: [TOKEN_TABLES.openclip, "transformer.resblocks.0.ln_1.weight"],
};
/** Layers of an encoder of pictures have the same names. */
const PICTURE_ENCODERS = ["vision_model.", "visual."];

/** Further keys of each layout. */
const LAYOUTS = {
  hf: {
    positions: "embeddings.position_embedding.weight",
    layers: "encoder.layers.",
    mlp: "mlp.fc1.weight",
    roots: ["embeddings.", "encoder.", "final_layer_norm."],
  },
  openclip: {
    positions: "positional_embedding",
    layers: "transformer.resblocks.",
    mlp: "mlp.c_fc.weight",
    roots: ["transformer.", "ln_final."],
  },
} as const;

const EXPECTED = `a text encoder of ${OWN_FAMILIES}`;

/** The text encoders of a file, in the order of their prefixes. */
export function findTextEncoders(weights: WeightMap): readonly FoundEncoder[] {
  const found = new Map<string, FoundEncoder>();
  for (const key of weights.keys()) {
    for (const layout of ["hf", "openclip"] as const) {
      const mark = MARKS[layout].find((ending) => key.endsWith(ending));
      if (mark === undefined) continue;
      const prefix = key.slice(0, -mark.length);
      if (!PICTURE_ENCODERS.some((picture) => prefix.endsWith(picture))) found.set(prefix, { layout, prefix });
      break;
    }
  }
  // merged files may have an encoder twice, once under the keys of old versions
  return [...found.values()]
    .filter(({ prefix }) => !found.has(`${prefix}text_model.`))
    .sort((a, b) => (a.prefix < b.prefix ? -1 : 1));
}

/** Recognises the text encoders of a file of their own. Throws model.unsupported if there is none, model.invalid. */
export function recogniseTextEncoders(file: ModelHeader): readonly TextPart[] {
  const found = findTextEncoders(file.weights);
  if (found.length > 0) return found.map((encoder) => ({ kind: "clip", part: textEncoderPart(file, encoder) }));
  const models = languageModels(file);
  if (models.length > 0) return models;
  throw unsupported(file.name, EXPECTED, kindInWords(file.weights));
}

/** The text encoders of a file that are larger than CLIP's. Throws model.invalid and model.unsupported. */
export function languageModels(file: ModelHeader): readonly TextPart[] {
  const { weights } = file;
  const [qwen3, qwen25, t5] = [findQwen3(weights, "3"), findQwen3(weights, "2.5-vl"), findT5(weights)];
  return [
    ...(qwen3 === undefined ? [] : [{ kind: "qwen3", part: qwen3Part(file, qwen3, "3") } as const]),
    ...(qwen25 === undefined ? [] : [qwen25Part(file, qwen25)]),
    ...(t5 === undefined ? [] : [{ kind: "t5", part: t5Part(file, t5) } as const]),
  ];
}

/** A Qwen2.5-VL language model with its vision tower, which fits it. Throws model.invalid and model.unsupported. */
function qwen25Part(file: ModelHeader, prefix: string): TextPart {
  const part = qwen3Part(file, prefix, "2.5-vl");
  const tower = qwenVisionPart(file, prefix);
  const { hidden } = part.config;
  if (tower !== undefined && tower.config.hidden !== hidden)
    throw invalid(file.name, `a vision tower that makes ${hidden} numbers of a token`, `${tower.config.hidden}`);
  return { kind: "qwen2.5-vl", part, tower };
}

/** Sizes and weights of a text encoder. Throws model.invalid and model.unsupported. */
export function textEncoderPart(
  file: ModelHeader,
  { layout, prefix }: FoundEncoder,
  name?: TextEncoderName,
): Part<TextEncoderConfig> {
  const weights = weightsOf(file.weights, layout, prefix);
  const shapes = new PartShapes(file, weights, (key) =>
    key.startsWith(HF_PROJECTION_LAYER) ? projectionKey(prefix).slice(0, -HF_PROJECTION.length) + key : prefix + key,
  );
  const keys = LAYOUTS[layout];
  const [vocabulary, hidden] = shapes.sides(TOKEN_TABLES[layout], 2) as [number, number];
  if (vocabulary < FEWEST_TOKENS)
    throw unsupported(file.name, `${EXPECTED} with ${FEWEST_TOKENS} tokens`, `one with ${vocabulary}`);
  const [positions] = shapes.sides(keys.positions, 2);
  if (positions !== POSITIONS)
    throw unsupported(file.name, `${EXPECTED} with ${POSITIONS} positions`, `one with ${positions}`);
  if (hidden % HEAD_SIZE !== 0)
    throw shapes.invalid(`a text encoder of a multiple of ${HEAD_SIZE} channels`, `${hidden}`);
  const layers = shapes.count(keys.layers, MOST_LAYERS);
  if (layers === 0) throw shapes.invalid("a text encoder with layers", "none");
  const [mlp] = shapes.sides(`${keys.layers}0.${keys.mlp}`, 2) as [number];
  const kind = name ?? guessName(layout, hidden, layers, shapes.has(HF_PROJECTION));
  const config: TextEncoderConfig = {
    name: kind,
    layout,
    hidden,
    layers,
    heads: hidden / HEAD_SIZE,
    mlp,
    vocabulary,
    positions: POSITIONS,
    missing: kind === "h" && layers === LAYERS_OF_H - 1 ? 1 : 0,
    activation: kind === "l" ? "quick-gelu" : "gelu",
    projection: kind === "l" ? undefined : projectionOf(shapes),
  };
  const build = (network: Network): void => buildTextEncoder(network, config, { layer: -1, finalNorm: true });
  return { config, weights: shapes.check(build, keys.roots, EXPECTED) };
}

const HF_PROJECTION = "text_projection.weight";
const HF_PROJECTION_LAYER = "text_projection.";

/** HF's projection stands beside the network and not in it. */
const projectionKey = (prefix: string): string =>
  `${prefix.endsWith("text_model.") ? prefix.slice(0, -"text_model.".length) : prefix}${HF_PROJECTION}`;

function weightsOf(all: WeightMap, layout: Layout, prefix: string): WeightMap {
  const weights = new Map<string, StoredWeight>();
  for (const [key, weight] of all) if (key.startsWith(prefix)) weights.set(key.slice(prefix.length), weight);
  if (layout === "hf")
    for (const [key, weight] of below(all, projectionKey(prefix).slice(0, -HF_PROJECTION.length)))
      if (key.startsWith(HF_PROJECTION_LAYER)) weights.set(key, weight);
  return weights;
}

function projectionOf(shapes: PartShapes): TextEncoderConfig["projection"] {
  for (const [key, transposed] of [
    ["text_projection", false],
    [HF_PROJECTION, true],
  ] as const)
    if (shapes.has(key)) return { key, transposed, size: shapes.sides(key, 2)[transposed ? 0 : 1]! };
  return undefined;
}

const WIDTH_OF_L = 768;

/** The encoder of a file of its own: depth and width are those of the trained ones, or a projection tells bigG. */
function guessName(layout: Layout, hidden: number, layers: number, isProjected: boolean): TextEncoderName {
  if (layers >= 31 || hidden === 1280) return "g";
  if (layout === "openclip" || layers >= LAYERS_OF_H - 1 || hidden === 1024) return "h";
  // some files of L have a projection too, which is not used
  return isProjected && hidden !== WIDTH_OF_L ? "g" : "l";
}
