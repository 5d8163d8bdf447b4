import { LATENT_FORMATS } from "../../../tensor/sampling/latent-format.js";
import { type ModelFamily, networkPart, withVae } from "../diffusion/family.js";
import { flowOf } from "../diffusion/sampling.js";
import { below, type ModelHeader, type Part, PartShapes, TRANSFORMER_PREFIXES } from "../recognition/part.js";
import { findTextEncoders, languageModels, textEncoderPart } from "../text-encoder/recognise.js";
import { quotedName, type StoredWeight, unsupported, type WeightMap } from "../weights/stored.js";
import { buildFlux } from "./build.js";
import { type ApproximatorSizes, FLUX_KINDS, type FluxConfig, type FluxKindName } from "./config.js";
import { DIFFUSERS_MARKS, diffusersKey, ownLayout } from "./diffusers-layout.js";
import { BuiltFlux } from "./model.js";

/** Flux.1 has 19 and 38. */
const MOST_BLOCKS = 256;
/** Patches that Flux.1 takes: the latent, with a picture beside it (Control), with a picture and a mask (Fill). */
const MULTIPLES = { control: 2, fill: 6 };
const CONTEXT_OF_LONGCAT = 3584;
const WORDS = { flux: "Flux.1", flux2: "Flux.2", chroma: "Chroma" } as const satisfies Record<FluxKindName, string>;

const ROOTS = [
  "img_in.",
  "txt_in.",
  "time_in.",
  "guidance_in.",
  "vector_in.",
  "double_blocks.",
  "single_blocks.",
  "final_layer.",
  "double_stream_modulation_",
  "single_stream_modulation.",
  "distilled_guidance_layer.",
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
  [`${FIRST}img_mlp.gate_proj.`, "an Ovis model"],
] as const;

/** Layer that all blocks of Flux.2 share. */
const SHARED = "double_stream_modulation_img.lin.weight";
/** Chroma's network that makes changes of tokens. */
const APPROXIMATOR = "distilled_guidance_layer.";
const MARK_OF_CHROMA = `${APPROXIMATOR}norms.0.scale`;

/** Flux.1 dev, schnell and those that take pictures; Flux.2 dev and klein; Chroma. */
export const flux: ModelFamily = {
  has: (weights) => findFlux(weights) !== undefined,
  *parts(file) {
    const part = fluxPart(file, findFlux(file.weights)!);
    yield;
    const { kind, hasGuidance } = part.config;
    const network = networkPart(kind === "flux" ? "Flux transformer" : `${WORDS[kind]} transformer`, part, BuiltFlux);
    if (kind === "flux2")
      return withVae(file, {
        family: "flux2",
        words: hasGuidance ? "Flux.2 dev" : "Flux.2 klein",
        sampling: () => flowOf("flux2", "Flux2"),
        network,
        textEncoders: languageModels(file).filter((model) => model.kind === "qwen3"),
        encoderCount: 1,
        clipType: "flux2",
        inpaint: false,
      });
    if (kind === "chroma")
      return withVae(file, {
        family: "chroma",
        words: "Chroma",
        sampling: () => flowOf("flux", "Flux"),
        network,
        textEncoders: languageModels(file).filter((model) => model.kind === "t5"),
        encoderCount: 1,
        clipType: "chroma",
        inpaint: false,
      });
    const clips = findTextEncoders(file.weights).map((encoder) => textEncoderPart(file, encoder, "l"));
    const { inputs, outputs } = part.config;
    const family = hasGuidance ? "flux" : "flux-schnell";
    return withVae(file, {
      family,
      words: hasGuidance ? "Flux.1 dev" : "Flux.1 schnell",
      sampling: () => flowOf(family, "Flux"),
      network,
      textEncoders: [
        ...clips.map((clip) => ({ kind: "clip", part: clip }) as const),
        ...languageModels(file).filter(({ kind }) => kind === "t5"),
      ],
      encoderCount: 2,
      clipType: "flux",
      inpaint: inputs === MULTIPLES.fill * outputs,
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
    [...NORMS.map((norm) => NORM + norm), ...DIFFUSERS_MARKS].some((mark) => weights.has(prefix + mark)),
  );

/**
 * Sizes and weights of a transformer of Flux's blocks, checked to hold every weight that its builder needs. Throws
 * model.invalid, and model.unsupported for relatives.
 *
 * @internal
 */
export function fluxPart(file: ModelHeader, prefix: string): Part<FluxConfig> {
  const weights = below(file.weights, prefix);
  const refuse = ({ key, dtype, shape }: StoredWeight, expected: string): Error =>
    unsupported(file.name, `${quotedName(key)} ${expected}`, `${dtype} [${shape.slice(0, 8).join(", ")}]`);
  const [, markOfFlux2] = DIFFUSERS_MARKS;
  const isDiffusers = DIFFUSERS_MARKS.some((mark) => weights.has(mark));
  const own = isDiffusers ? ownLayout(weights, refuse) : weights;
  const kind = own.has(SHARED) || weights.has(markOfFlux2) ? "flux2" : own.has(MARK_OF_CHROMA) ? "chroma" : "flux";
  const shapes = new PartShapes(
    file,
    own,
    (key) => prefix + (isDiffusers ? diffusersKey(key, weights.has(markOfFlux2)) : key),
  );
  const expected = `a ${WORDS[kind]} model`;
  const relative = relativeOf(weights);
  if (relative !== undefined) throw unsupported(file.name, expected, relative);
  const config = fluxConfig(shapes, kind, expected);
  return { config, weights: shapes.check((network) => buildFlux(network, config), ROOTS, expected) };
}

/** Name of the relative that has one of these keys. */
function relativeOf(weights: WeightMap): string | undefined {
  const keys = [...weights.keys()];
  const relative = RELATIVES.find(([beginning]) => keys.some((key) => key.startsWith(beginning)));
  return relative?.[1];
}

function fluxConfig(shapes: PartShapes, kind: FluxKindName, expected: string): FluxConfig {
  const { name } = shapes.file;
  const { latentFormat, places } = FLUX_KINDS[kind];
  const [width, inputs] = shapes.sides("img_in.weight", 2) as [number, number];
  const [, contextWidth] = shapes.sides("txt_in.weight", 2) as [number, number];
  if (contextWidth === CONTEXT_OF_LONGCAT) throw unsupported(name, expected, "a LongCat model");
  const [outputs] = shapes.sides("final_layer.linear.weight", 2) as [number];
  const patch = LATENT_FORMATS[latentFormat].channels * places.patchSide * places.patchSide;
  const known = [1, ...(kind === "flux" ? Object.values(MULTIPLES) : [])].map((multiple) => multiple * patch);
  if (!known.includes(inputs) || outputs !== patch)
    throw unsupported(
      name,
      `${expected} that takes ${known.join(", ")} numbers of a patch and makes ${patch}`,
      `one that takes ${inputs} and makes ${outputs}`,
    );
  const norms = shapes.has(`${NORM}scale`) ? "scale" : "weight";
  const [headSize] = shapes.sides(NORM + norms, 1) as [number];
  if (headSize % places.headStep !== 0 || width % headSize !== 0)
    throw shapes.invalid(`heads of a multiple of ${places.headStep} numbers that divide ${width}`, `${headSize}`);
  const [, mlp] = shapes.sides(`${FIRST}img_mlp.2.weight`, 2) as [number, number];
  return {
    kind,
    inputs,
    outputs,
    width,
    heads: width / headSize,
    headSize,
    mlp,
    norms,
    contextWidth,
    pooledWidth: kind === "flux" ? shapes.sides("vector_in.in_layer.weight", 2)[1]! : 0,
    doubleBlocks: shapes.count("double_blocks.", MOST_BLOCKS),
    singleBlocks: shapes.count("single_blocks.", MOST_BLOCKS),
    hasGuidance: shapes.has("guidance_in.in_layer.weight"),
    ...(kind === "chroma" ? { approximator: approximatorSizes(shapes) } : {}),
  };
}

/** Parts of its input: half of it embeds the number of a change, each quarter a time and a guidance. */
const INPUT_STEP = 8;

function approximatorSizes(shapes: PartShapes): ApproximatorSizes {
  const [width, inputs] = shapes.sides(`${APPROXIMATOR}in_proj.weight`, 2) as [number, number];
  if (inputs % INPUT_STEP !== 0)
    throw shapes.invalid(`an approximator of a multiple of ${INPUT_STEP} inputs`, `${inputs}`);
  return { inputs, width, layers: shapes.count(`${APPROXIMATOR}layers.`, MOST_BLOCKS) };
}
