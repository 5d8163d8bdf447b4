import { type ModelFamily, networkPart, withVae } from "../diffusion/family.js";
import { flowOf } from "../diffusion/sampling.js";
import { below, type ModelHeader, type Part, PartShapes, TRANSFORMER_PREFIXES } from "../recognition/part.js";
import { languageModels } from "../text-encoder/recognise.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import { buildZImage, type ZImageConfig } from "./build.js";
import { BuiltZImage } from "./model.js";
import { diffusersKey, originalLayout } from "./names.js";

/** Z-Image has 30. */
const MOST_LAYERS = 256;
/** Channels of its latents, in patches of 2 x 2 cells. */
const CHANNELS = 16;
const PATCH_CELLS = 4;
/** Rotations share a head as 4, 6 and 6 of 16 numbers. */
const HEAD_STEP = 16;
const WIDTH_OF_LUMINA = 2304;
const EXPECTED = "a Z-Image model";

const ROOTS = [
  "x_embedder.",
  "all_x_embedder.",
  "cap_embedder.",
  "t_embedder.",
  "noise_refiner.",
  "context_refiner.",
  "layers.",
  "final_layer.",
  "all_final_layer.",
];
const MARK = "noise_refiner.0.attention.k_norm.weight";
const MARKS = [MARK, diffusersKey(MARK)];
const CAPTION = "cap_embedder.1.weight";
/** Relatives with these weights and others beside them. */
const RELATIVES = [
  ["siglip_embedder.0.weight", "a Z-Image Omni model"],
  ["dec_net.cond_embed.weight", "a Z-Image Pixel model"],
] as const;

export const zImage: ModelFamily = {
  has: (weights) => findZImage(weights) !== undefined,
  *parts(file) {
    const part = zImagePart(file, findZImage(file.weights)!);
    yield;
    return withVae(file, {
      family: "z-image",
      words: "Z-Image",
      sampling: () => flowOf("z-image", "Flux"),
      network: networkPart("Z-Image transformer", part, BuiltZImage),
      textEncoders: languageModels(file).filter(({ kind }) => kind === "qwen3"),
      encoderCount: 1,
      inpaint: false,
    });
  },
};

/** Prefix of the Z-Image transformer of a file; undefined if there is none. One that lacks weights is found too. */
const findZImage = (weights: WeightMap): string | undefined =>
  TRANSFORMER_PREFIXES.find(
    (prefix) => weights.has(prefix + CAPTION) && MARKS.some((mark) => weights.has(prefix + mark)),
  );

/**
 * Sizes and weights of a Z-Image transformer, checked to hold every weight that its builder needs. Throws model.invalid,
 * and model.unsupported for its relatives.
 *
 * @internal
 */
export function zImagePart(file: ModelHeader, prefix: string): Part<ZImageConfig> {
  const own = below(file.weights, prefix);
  const nameInFile = own.has(MARK) ? (key: string) => key : diffusersKey;
  const shapes = new PartShapes(file, originalLayout(own), (key) => prefix + nameInFile(key));
  for (const [key, relative] of RELATIVES) if (shapes.has(key)) throw unsupported(file.name, EXPECTED, relative);
  const config = zImageConfig(shapes);
  return { config, weights: shapes.check((network) => buildZImage(network, config), ROOTS, EXPECTED) };
}

function zImageConfig(shapes: PartShapes): ZImageConfig {
  const [width, captionWidth] = shapes.sides(CAPTION, 2) as [number, number];
  if (width === WIDTH_OF_LUMINA) throw unsupported(shapes.file.name, EXPECTED, "a Lumina 2 model");
  const [headSize] = shapes.sides(MARK, 1) as [number];
  if (headSize % HEAD_STEP !== 0 || width % headSize !== 0)
    throw shapes.invalid(`heads of a multiple of ${HEAD_STEP} numbers that divide ${width}`, `${headSize}`);
  const [, patch] = shapes.sides("x_embedder.weight", 2);
  if (patch !== PATCH_CELLS * CHANNELS)
    throw unsupported(shapes.file.name, `${EXPECTED} with ${CHANNELS} latent channels`, `one with ${patch! / 4}`);
  const [timeHidden] = shapes.sides("t_embedder.mlp.0.weight", 2) as [number];
  const [timeWidth] = shapes.sides("t_embedder.mlp.2.weight", 2) as [number];
  const layers = shapes.count("layers.", MOST_LAYERS);
  if (layers === 0) throw shapes.invalid("a transformer with layers", "none");
  const [mlp] = shapes.sides("layers.0.feed_forward.w1.weight", 2) as [number];
  return {
    channels: CHANNELS,
    width,
    heads: width / headSize,
    headSize,
    captionWidth,
    layers,
    mlp,
    timeHidden,
    timeWidth,
    noiseRefiners: shapes.count("noise_refiner.", MOST_LAYERS),
    contextRefiners: shapes.count("context_refiner.", MOST_LAYERS),
  };
}
