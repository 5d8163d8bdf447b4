import { LATENT_FORMATS } from "../../../tensor/sampling/latent-format.js";
import { type ModelFamily, networkPart, withVae } from "../diffusion/family.js";
import { flowOf } from "../diffusion/sampling.js";
import { below, type ModelHeader, type Part, PartShapes, TRANSFORMER_PREFIXES } from "../recognition/part.js";
import { findTextEncoders, languageModels, textEncoderPart } from "../text-encoder/recognise.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import { buildSd3, HEAD_SIZE, PATCH_CELLS, POSITIONS, type Sd3Config } from "./build.js";
import { BuiltSd3 } from "./model.js";

/** 3.5 large has 38. */
const MOST_BLOCKS = 256;
const EXPECTED = "a Stable Diffusion 3 model";
const FIRST = "joint_blocks.0.";
const MARK = `${FIRST}context_block.attn.qkv.weight`;
const ROOTS = ["x_embedder.", "t_embedder.", "y_embedder.", "context_embedder.", "joint_blocks.", "final_layer."];
/** Part of the prefix of CLIP-G in checkpoints; the other one is CLIP-L. */
const PREFIX_OF_G = "clip_g.";

/** Stable Diffusion 3 medium, 3.5 medium and large. */
export const sd3: ModelFamily = {
  has: (weights) => findSd3(weights) !== undefined,
  *parts(file) {
    const part = sd3Part(file, findSd3(file.weights)!);
    yield;
    const clips = findTextEncoders(file.weights).map((encoder) =>
      textEncoderPart(file, encoder, encoder.prefix.includes(PREFIX_OF_G) ? "g" : "l"),
    );
    const textEncoders = [
      ...clips.map((clip) => ({ kind: "clip", part: clip }) as const),
      ...languageModels(file).filter(({ kind }) => kind === "t5"),
    ];
    return withVae(file, {
      family: "sd3",
      words: wordsOf(part.config),
      sampling: () => flowOf("sd3", "SD3"),
      network: networkPart("SD 3 transformer", part, BuiltSd3),
      textEncoders,
      // a file may leave some of them to files of their own
      encoderCount: Math.max(1, textEncoders.length),
      clipType: "sd3",
      inpaint: false,
    });
  },
};

function wordsOf({ hasHeadNorms, selfAttending }: Sd3Config): string {
  if (selfAttending > 0) return "SD 3.5 medium";
  return hasHeadNorms ? "SD 3.5 large" : "SD 3";
}

/** Prefix of the transformer of a file; undefined if there is none. One that lacks weights is found too. @internal */
export const findSd3 = (weights: WeightMap): string | undefined =>
  TRANSFORMER_PREFIXES.find((prefix) => weights.has(prefix + MARK));

/**
 * Sizes and weights of a transformer of Stable Diffusion 3, checked to hold every weight that its builder needs. Throws
 * model.invalid, and model.unsupported for other latents and further weights.
 *
 * @internal
 */
export function sd3Part(file: ModelHeader, prefix: string): Part<Sd3Config> {
  const weights = below(file.weights, prefix);
  const shapes = new PartShapes(file, weights, (key) => prefix + key);
  const config = sd3Config(shapes);
  const table = weights.get(POSITIONS)!;
  weights.set(POSITIONS, { ...table, shape: table.shape.slice(1) });
  return { config, weights: shapes.check((network) => buildSd3(network, config), ROOTS, EXPECTED) };
}

function sd3Config(shapes: PartShapes): Sd3Config {
  const [width, channels] = shapes.sides("x_embedder.proj.weight", 4) as [number, number];
  const [outputs] = shapes.sides("final_layer.linear.weight", 2) as [number];
  const own = LATENT_FORMATS.SD3.channels;
  if (channels !== own || outputs !== PATCH_CELLS * own)
    throw unsupported(
      shapes.file.name,
      `${EXPECTED} with ${own} latent channels`,
      `one that takes ${channels} and makes ${outputs / PATCH_CELLS}`,
    );
  if (width % HEAD_SIZE !== 0) throw shapes.invalid(`a multiple of ${HEAD_SIZE} numbers of a token`, `${width}`);
  const [one, rows] = shapes.sides(POSITIONS, 3) as [number, number];
  const side = Math.round(Math.sqrt(rows));
  if (one !== 1 || side * side !== rows) throw shapes.invalid("a square table of positions", `${one} x ${rows} rows`);
  const [, contextWidth] = shapes.sides("context_embedder.weight", 2) as [number, number];
  const [, pooledWidth] = shapes.sides("y_embedder.mlp.0.weight", 2) as [number, number];
  const [mlp] = shapes.sides(`${FIRST}x_block.mlp.fc1.weight`, 2) as [number];
  const blocks = shapes.count("joint_blocks.", MOST_BLOCKS);
  const selfAttending = Array.from({ length: blocks }, (_, index) => index).filter((index) =>
    shapes.has(`joint_blocks.${index}.x_block.attn2.qkv.weight`),
  ).length;
  const hasHeadNorms = shapes.has(`${FIRST}x_block.attn.ln_q.weight`);
  return {
    channels,
    width,
    heads: width / HEAD_SIZE,
    mlp,
    contextWidth,
    pooledWidth,
    side,
    blocks,
    selfAttending,
    hasHeadNorms,
  };
}
