import { type ModelFamily, networkPart, withVae } from "../diffusion/family.js";
import { flowOf } from "../diffusion/sampling.js";
import { FLUX_PLACES } from "../flux/patches.js";
import { below, type ModelHeader, type Part, PartShapes, TRANSFORMER_PREFIXES } from "../recognition/part.js";
import { languageModels } from "../text-encoder/recognise.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import { buildQwenImage, type QwenImageConfig } from "./build.js";
import { BuiltQwenImage } from "./model.js";

/** Qwen-Image has 60. */
const MOST_BLOCKS = 256;
/** Numbers of a patch of 2 x 2 cells of 16 channels. */
const PATCH = 64;
const EXPECTED = "a Qwen-Image model";
const BLOCKS = "transformer_blocks.";
const FIRST = `${BLOCKS}0.`;
const MARKS = ["txt_norm.weight", `${FIRST}img_mod.1.weight`];
/** Empty tensor of Edit 2511: references have the time 0. */
const REFERENCE_TIME = "__index_timestep_zero__";
/** Relatives with these weights and others beside them. */
const RELATIVES = [
  ["time_text_embed.addition_t_embedding.weight", "a Qwen-Image Layered model"],
  ["controlnet_blocks.0.weight", "a ControlNet of Qwen-Image (InstantX)"],
] as const;
const ROOTS = ["img_in.", "txt_norm.", "txt_in.", "time_text_embed.", BLOCKS, "norm_out.", "proj_out."];

/** Qwen-Image and Qwen-Image-Edit. */
export const qwenImage: ModelFamily = {
  has: (weights) => findQwenImage(weights) !== undefined,
  *parts(file) {
    const part = qwenImagePart(file, findQwenImage(file.weights)!);
    yield;
    return withVae(file, {
      family: "qwen-image",
      words: part.config.hasReferenceTime ? "Qwen-Image-Edit 2511" : "Qwen-Image",
      sampling: () => flowOf("qwen-image", "Wan21"),
      network: networkPart("Qwen-Image transformer", part, BuiltQwenImage),
      textEncoders: languageModels(file).filter(({ kind }) => kind === "qwen2.5-vl"),
      encoderCount: 1,
      inpaint: false,
    });
  },
};

/** Prefix of the transformer of a file; undefined if there is none. One that lacks weights is found too. */
const findQwenImage = (weights: WeightMap): string | undefined =>
  TRANSFORMER_PREFIXES.find((prefix) => MARKS.every((mark) => weights.has(prefix + mark)));

/**
 * Sizes and weights of a Qwen-Image transformer, checked to hold every weight that its builder needs. Throws model.invalid,
 * and model.unsupported for its relatives.
 *
 * @internal
 */
export function qwenImagePart(file: ModelHeader, prefix: string): Part<QwenImageConfig> {
  const shapes = new PartShapes(file, below(file.weights, prefix), (key) => prefix + key);
  for (const [key, relative] of RELATIVES) if (shapes.has(key)) throw unsupported(file.name, EXPECTED, relative);
  const config = qwenImageConfig(shapes);
  return { config, weights: shapes.check((network) => buildQwenImage(network, config), ROOTS, EXPECTED) };
}

function qwenImageConfig(shapes: PartShapes): QwenImageConfig {
  const [width, inputs] = shapes.sides("img_in.weight", 2) as [number, number];
  if (inputs !== PATCH)
    throw unsupported(
      shapes.file.name,
      `${EXPECTED} that takes ${PATCH} numbers of a patch`,
      `one that takes ${inputs}`,
    );
  const [contextWidth] = shapes.sides("txt_norm.weight", 1) as [number];
  const [headSize] = shapes.sides(`${FIRST}attn.norm_q.weight`, 1) as [number];
  if (headSize % FLUX_PLACES.headStep !== 0 || width % headSize !== 0)
    throw shapes.invalid(`heads of a multiple of ${FLUX_PLACES.headStep} numbers that divide ${width}`, `${headSize}`);
  const [mlp] = shapes.sides(`${FIRST}img_mlp.net.0.proj.weight`, 2) as [number];
  return {
    inputs,
    width,
    heads: width / headSize,
    headSize,
    mlp,
    contextWidth,
    blocks: shapes.count(BLOCKS, MOST_BLOCKS),
    hasReferenceTime: shapes.has(REFERENCE_TIME),
  };
}
