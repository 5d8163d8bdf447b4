import {
  below,
  type ModelHeader,
  type Part,
  PartShapes,
  type Rename,
  renamed,
  unwrappedFile,
} from "../recognition/part.js";
import { kindInWords, OWN_FAMILIES } from "../recognition/refusal.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import { buildVaeDecoder, buildVaeEncoder, type VaeConfig } from "./build.js";
import { isTaesd, type TaesdConfig, taesdPart } from "./taesd.js";
import {
  BETWEEN_FRAMES,
  WAN_22_MARK,
  WAN_DIFFUSERS_MARK,
  WAN_DIFFUSERS_RENAMES,
  WAN_MARK,
  WAN_RENAMES,
} from "./wan.js";

/** Between the halves, pictures have an eighth of their sides. */
const LEVELS = 4;
/**
 * Channels between the halves, and whether their moments go through a layer of their own, as those of Stable Diffusion and
 * of Flux.2 do.
 */
const QUANTISED: Readonly<Record<VaeConfig["family"], ReadonlyMap<number, boolean>>> = {
  sd: new Map([
    [4, true],
    [16, false],
    [32, true],
  ]),
  wan: new Map([[16, true]]),
};
/** Running figures of latents, which tell Flux.2's from others of 32 channels. */
const NORM = "bn.running_mean";
const CHANNELS_OF_FLUX2 = 32;
/** Latents of Flux have a shift, which tiny autoencoders do not know. */
const FLUX_CHANNELS = 16;
const GROUPS = 32;
const MOST_BLOCKS = 16;
const ROOTS = ["decoder.", "encoder.", "quant_conv.", "post_quant_conv."];
const EXPECTED = `a VAE of ${OWN_FAMILIES}`;

/** Prefixes of the VAE's keys in checkpoints; a separate file may have none. */
const PREFIXES = ["first_stage_model.", "vae."];

/** Keys that show a VAE, also one that lacks some: LDM's names, diffusers' and Wan's. */
const MARKS = [
  "decoder.mid.block_1.norm1.weight",
  "decoder.conv_in.weight",
  "encoder.conv_in.weight",
  "decoder.mid_block.resnets.0.norm1.weight",
  WAN_MARK,
  WAN_DIFFUSERS_MARK,
  WAN_22_MARK,
];

/** A VAE in a separate file. */
export type RecognisedVae =
  | { readonly kind: "vae"; readonly part: Part<VaeConfig> }
  | { readonly kind: "taesd"; readonly part: Part<TaesdConfig> };

/** Recognises a file with a VAE or a tiny autoencoder. Throws model.unsupported for other files, model.invalid. */
export function recogniseVae(whole: ModelHeader): RecognisedVae {
  const file = unwrappedFile(whole, (weights) => isTaesd(weights) || findVae(weights, [...PREFIXES, ""]) !== undefined);
  const tiny = taesdPart(file);
  if (tiny?.config.latentChannels === FLUX_CHANNELS)
    throw unsupported(file.name, EXPECTED, "a tiny autoencoder of Flux, which only decodes previews");
  if (tiny !== undefined) return { kind: "taesd", part: tiny };
  const prefix = findVae(file.weights, [...PREFIXES, ""]);
  if (prefix === undefined) throw unsupported(file.name, EXPECTED, kindInWords(file.weights));
  return { kind: "vae", part: vaePart(file, prefix) };
}

/** The VAE of a checkpoint; undefined if there is none. Throws model.unsupported, model.invalid. */
export function vaeOfCheckpoint(file: ModelHeader): Part<VaeConfig> | undefined {
  const prefix = findVae(file.weights, PREFIXES);
  return prefix === undefined ? undefined : vaePart(file, prefix);
}

const findVae = (weights: WeightMap, prefixes: readonly string[]): string | undefined =>
  prefixes.find((prefix) => MARKS.some((mark) => weights.has(prefix + mark)));

/** Sizes and weights of a VAE, under LDM keys. */
function vaePart(file: ModelHeader, prefix: string): Part<VaeConfig> {
  const own = below(file.weights, prefix);
  if (own.has(WAN_22_MARK)) throw unsupported(file.name, EXPECTED, "one of Wan 2.2");
  const isWanDiffusers = own.has(WAN_DIFFUSERS_MARK);
  const isWan = isWanDiffusers || own.has(WAN_MARK);
  if (isWan) for (const key of [...own.keys()]) if (key.includes(BETWEEN_FRAMES)) own.delete(key);
  const isDiffusers = own.has("decoder.up_blocks.0.resnets.0.norm1.weight");
  const isInside = own.has(`${QUANT_RENAMES[1][0]}weight`);
  const ofWan = isWanDiffusers ? WAN_DIFFUSERS_RENAMES : WAN_RENAMES;
  const renames = [...(isInside ? QUANT_RENAMES : []), ...(isWan ? ofWan : isDiffusers ? RENAMES : [])];
  const { weights, nameInFile } = renamed(own, renames, prefix);
  const shapes = new PartShapes(file, weights, nameInFile);
  const config = vaeConfig(shapes, isWan ? "wan" : "sd");
  const used = shapes.check(
    (network) => {
      buildVaeDecoder(network, config);
      if (config.hasEncoder) buildVaeEncoder(network, config);
    },
    // a file with only a decoder may keep the layer between
    config.hasEncoder ? ROOTS : ["decoder."],
    EXPECTED,
  );
  return { config, weights: used };
}

function vaeConfig(shapes: PartShapes, family: VaeConfig["family"]): VaeConfig {
  const rank = family === "wan" ? 5 : 4;
  const first = shapes.weights.get("decoder.conv_in.weight")?.shape;
  if (first?.length === 5 && rank === 4) throw unsupported(shapes.file.name, EXPECTED, "one of videos");
  const latentChannels = shapes.sides("decoder.conv_in.weight", rank)[1]!;
  const quantised = QUANTISED[family].get(latentChannels);
  const normalised = latentChannels === CHANNELS_OF_FLUX2;
  if (quantised === undefined || normalised !== shapes.has(NORM))
    throw unsupported(shapes.file.name, EXPECTED, `one with ${latentChannels} latent channels`);
  const levels = shapes.count("decoder.up.", MOST_BLOCKS);
  if (levels !== LEVELS) throw unsupported(shapes.file.name, `${EXPECTED} with ${LEVELS} levels`, `one with ${levels}`);
  const channels = shapes.sides("decoder.conv_out.weight", rank)[1]!;
  const hasEncoder = [...shapes.weights.keys()].some((key) => key.startsWith("encoder."));
  const encoderChannels = hasEncoder ? shapes.sides("encoder.conv_in.weight", rank)[0]! : channels;
  for (const count of family === "sd" ? [channels, encoderChannels] : [])
    if (count % GROUPS !== 0) throw shapes.invalid(`a VAE with a multiple of ${GROUPS} channels`, `${count}`);
  const multipliers = Array.from({ length: levels }, (_, level) => {
    const width = shapes.sides(`decoder.up.${level}.block.0.conv1.weight`, rank)[0]!;
    if (width % channels !== 0)
      throw shapes.invalid(`level ${level} of the VAE with a multiple of ${channels} channels`, `${width}`);
    return width / channels;
  });
  const blocks = shapes.count("decoder.up.0.block.", MOST_BLOCKS) - 1;
  if (blocks < 1) throw shapes.invalid("a VAE with at least 2 blocks of each level of its decoder", `${blocks + 1}`);
  const attention = shapes.weights.get("decoder.mid.attn_1.q.weight")?.shape.length === 2 ? 2 : 4;
  return {
    family,
    channels,
    encoderChannels,
    multipliers,
    blocks,
    latentChannels,
    normalised,
    quantised,
    attention,
    hasEncoder,
  };
}

/** Layers between the halves, which Flux.2's own file has inside them. */
const QUANT_RENAMES = [
  ["encoder.quant_conv.", "quant_conv."],
  ["decoder.post_quant_conv.", "post_quant_conv."],
] as const;

function levelRenames(half: string, level: number): Rename[] {
  const [side, sampler, to] =
    half === "encoder" ? ["down", "downsample", level] : ["up", "upsample", LEVELS - 1 - level];
  const at = `${half}.${side}_blocks.${level}.`;
  return [
    ...Array.from({ length: MOST_BLOCKS }, (_, block) =>
      blockRenames(`${at}resnets.${block}.`, `${half}.${side}.${to}.block.${block}.`),
    ).flat(),
    [`${at}${sampler}rs.0.`, `${half}.${side}.${to}.${sampler}.`],
  ];
}

/** Layers of a block, diffusers' name first. */
const blockRenames = (from: string, to: string): Rename[] => [
  [from, to],
  [`${from}conv_shortcut.`, `${to}nin_shortcut.`],
];

/** Layers of the attention; the older names last, so that a key that is absent goes by the newer. */
const ATTENTION_LAYERS = [
  ["query", "q"],
  ["key", "k"],
  ["value", "v"],
  ["proj_attn", "proj_out"],
  ["group_norm", "norm"],
  ["to_q", "q"],
  ["to_k", "k"],
  ["to_v", "v"],
  ["to_out.0", "proj_out"],
] as const;

const attentionRenames = (from: string, to: string): Rename[] =>
  ATTENTION_LAYERS.map(([diffusers, ldm]): Rename => [`${from}${diffusers}.`, `${to}${ldm}.`]);

/** Diffusers' names of the layers of a VAE of four levels. */
const RENAMES: readonly Rename[] = ["encoder", "decoder"].flatMap((half): Rename[] => [
  [`${half}.conv_norm_out.`, `${half}.norm_out.`],
  ...["resnets.0", "resnets.1"].flatMap((block, index) =>
    blockRenames(`${half}.mid_block.${block}.`, `${half}.mid.block_${index + 1}.`),
  ),
  ...attentionRenames(`${half}.mid_block.attentions.0.`, `${half}.mid.attn_1.`),
  ...Array.from({ length: LEVELS }, (_, level) => levelRenames(half, level)).flat(),
]);
