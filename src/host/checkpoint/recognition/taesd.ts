import {
  buildTaesdDecoder,
  buildTaesdEncoder,
  TAESD_DECODER,
  TAESD_ENCODER,
  type TaesdConfig,
} from "../networks/taesd.js";
import type { WeightMap } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import { type ModelFile, numberOf, type Part, PartShapes } from "./part.js";
import { OWN_FAMILIES, unsupported } from "./refusal.js";
import { type Rename, renamed } from "./rename.js";

/** Channels of latents: 4, and 16 of Flux (TAEF1). */
const LATENT_CHANNELS: readonly number[] = [4, 16];
const EXPECTED = `a tiny autoencoder of ${OWN_FAMILIES}`;
const COLOURS = 3;
/** Layers of the longer half are numbered up to 19. */
const MOST_LAYERS = 32;
const NUMBERS = Array.from({ length: MOST_LAYERS }, (_, number) => number);

/** Keys of a file with one half: numbers alone. */
const DECODER_ALONE: readonly Rename[] = NUMBERS.map((n) => [`${n}.`, `${TAESD_DECODER}.${n}.`]);
const ENCODER_ALONE: readonly Rename[] = NUMBERS.map((n) => [`${n}.`, `${TAESD_ENCODER}.${n}.`]);
/** Diffusers does not count the squeezing of latents. */
const DIFFUSERS: readonly Rename[] = NUMBERS.flatMap((n): Rename[] => [
  [`decoder.layers.${n}.`, `${TAESD_DECODER}.${n + 1}.`],
  [`encoder.layers.${n}.`, `${TAESD_ENCODER}.${n}.`],
]);

/** Whether a file has the keys of a tiny autoencoder. */
export const isTaesd = (weights: WeightMap): boolean => renamesOf(weights) !== undefined;

/** Sizes and weights of a tiny autoencoder; undefined for another file. Throws model.invalid and model.unsupported. */
export function taesdPart(file: ModelFile): Part<TaesdConfig> | undefined {
  const renames = renamesOf(file.weights);
  if (renames === undefined) return undefined;
  const { weights, nameInFile } = renamed(file.weights, renames, "");
  const shapes = new PartShapes(file, weights, nameInFile);
  const has = (half: string): boolean => [...weights.keys()].some((key) => key.startsWith(`${half}.`));
  const [hasDecoder, hasEncoder] = [has(TAESD_DECODER), has(TAESD_ENCODER)];
  const [first, last] = hasDecoder
    ? [shapes.sides(`${TAESD_DECODER}.1.weight`, 4)[1]!, shapes.sides(`${TAESD_DECODER}.1.weight`, 4)[0]!]
    : [shapes.sides(`${TAESD_ENCODER}.14.weight`, 4)[0]!, shapes.sides(`${TAESD_ENCODER}.14.weight`, 4)[1]!];
  if (!LATENT_CHANNELS.includes(first)) throw unsupported(file.name, EXPECTED, `one with ${first} latent channels`);
  const config: TaesdConfig = { channels: last, latentChannels: first, hasDecoder, hasEncoder };
  const used = shapes.check(
    (network) => {
      if (hasDecoder) buildTaesdDecoder(network, config);
      if (hasEncoder) buildTaesdEncoder(network, config);
    },
    [TAESD_DECODER, TAESD_ENCODER],
    EXPECTED,
  );
  return { config, weights: used };
}

/**
 * Factor between the latents of nodes and those of a tiny autoencoder's file. Throws model.unsupported where they differ in
 * more, model.invalid.
 */
export async function taesdScale({ name, weights }: ModelFile, read: ReadValues): Promise<number> {
  const [scale, shift] = ["vae_scale", "vae_shift"].map((key) => weights.get(key));
  if (shift !== undefined && (await numberOf(name, shift, read)) !== 0)
    throw unsupported(name, EXPECTED, 'one with a "vae_shift" other than 0');
  return scale === undefined ? 1 : numberOf(name, scale, read);
}

function renamesOf(weights: WeightMap): readonly Rename[] | undefined {
  if (weights.has(`${TAESD_DECODER}.1.weight`) || weights.has(`${TAESD_ENCODER}.0.weight`)) return [];
  if (weights.has("decoder.layers.0.weight") || weights.has("encoder.layers.0.weight")) return DIFFUSERS;
  // both halves have a block with that key
  if (!weights.has("3.conv.0.weight")) return undefined;
  return weights.get("0.weight")?.shape[1] === COLOURS ? ENCODER_ALONE : DECODER_ALONE;
}
