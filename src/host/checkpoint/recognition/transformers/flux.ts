import { HEAD_STEP } from "../../networks/flux/positions.js";
import { buildFlux, type FluxConfig } from "../../networks/flux/transformer.js";
import { DIFFUSERS_MARK, diffusersKey, ownLayout } from "../../weights/flux-layout.js";
import { quotedName, type StoredWeight, type WeightMap } from "../../weights/stored.js";
import { below, type ModelFile, type Part, PartShapes } from "../part.js";
import { unsupported } from "../refusal.js";

/** Flux.1 has 19 and 38. */
const MOST_BLOCKS = 256;
/** Numbers of a patch of 2 x 2 cells of 16 channels. */
const PATCH = 64;
/** Patches that models take: the latent, with a picture beside it (Control), with a picture and a mask (Fill). */
const INPUTS = [PATCH, 2 * PATCH, 6 * PATCH];
/** Whether a model that takes so many numbers of a patch takes a mask. */
export const takesMask = (inputs: number): boolean => inputs === INPUTS[2];
const CONTEXT_OF_LONGCAT = 3584;
const EXPECTED = "a Flux.1 model";

/** Prefixes of the transformer's keys, those of whole checkpoints first. */
const PREFIXES = ["model.diffusion_model.", "diffusion_model.", "model.", "transformer.", ""];
const ROOTS = [
  ...["img_in.", "txt_in.", "time_in.", "guidance_in.", "vector_in."],
  ...["double_blocks.", "single_blocks.", "final_layer.", "transformer_blocks.", "single_transformer_blocks."],
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

/**
 * Prefix of the transformer of a file that has Flux's blocks; undefined where there is none. One that lacks weights is found
 * too, and so are relatives.
 */
export const findFlux = ({ weights }: Pick<ModelFile, "weights">): string | undefined =>
  PREFIXES.find((prefix) =>
    [...NORMS.map((norm) => NORM + norm), DIFFUSERS_MARK].some((mark) => weights.has(prefix + mark)),
  );

/**
 * Sizes and weights of a Flux.1 transformer, of which every weight that its builder needs is there. Throws model.invalid,
 * and model.unsupported for its relatives.
 */
export function fluxPart(file: ModelFile, prefix: string): Part<FluxConfig> {
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
    ...{ inputs, outputs, width, heads: width / headSize, headSize, mlp, norms, contextWidth, pooledWidth },
    doubleBlocks: shapes.count("double_blocks.", MOST_BLOCKS),
    singleBlocks: shapes.count("single_blocks.", MOST_BLOCKS),
    hasGuidance: shapes.has("guidance_in.in_layer.weight"),
  };
}
