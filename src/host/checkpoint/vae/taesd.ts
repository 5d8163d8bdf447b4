import { add, conv, doubled, imagesOf, planesOf } from "../networks/layers.js";
import type { Value } from "../onnx/graph.js";
import { type ModelHeader, numberOf, type Part, PartShapes, type Rename, renamed } from "../recognition/part.js";
import { OWN_FAMILIES } from "../recognition/refusal.js";
import type { Network } from "../weights/network.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";

/** Sizes of a tiny autoencoder (TAESD): a small VAE for previews, whose layers are numbered. */
export interface TaesdConfig {
  /** 64 in the published files. */
  readonly channels: number;
  readonly latentChannels: number;
  readonly hasDecoder: boolean;
  readonly hasEncoder: boolean;
}

const TAESD_DECODER = "taesd_decoder";
const TAESD_ENCODER = "taesd_encoder";

/** Levels that differ by a factor of 2, three blocks in each but the one of a picture's size. */
const HALVINGS = 3;
const BLOCKS = 3;
/** Latents beyond about ±3 are squeezed together. */
const BOUND = 3;
const COLOURS = 3;

/** Factor of latents on their way to the model, for networks that take them as nodes pass them. */
interface TaesdOptions {
  readonly scaleFactor: number;
}

/**
 * Writes the decoder: `z` [B, 4, h, w] to `image` [B, 3, 8h, 8w], about 0…1. Latents are in the model's units; with a
 * scale factor latent and image are as nodes pass them, the image [B, 8h, 8w, 3] and clamped.
 */
export function buildTaesdDecoder(
  network: Network,
  { channels, latentChannels }: TaesdConfig,
  options?: TaesdOptions,
): void {
  const { graph } = network;
  const input = graph.input("z", "float", ["batch", latentChannels, "height", "width"]);
  const z = options === undefined ? input : graph.node("Mul", [input, graph.floats([options.scaleFactor], [])]);
  const bound = graph.floats([BOUND], []);
  const bounded = graph.node("Mul", [graph.node("Tanh", [graph.node("Div", [z, bound])]), bound]);
  // numbers count activations and upsampling as well
  let number = 1;
  const at = (): string => `${TAESD_DECODER}.${number++}`;
  let x = relu(network, conv(network, at(), bounded, [latentChannels, channels], { kernel: 3 }));
  number++;
  for (let level = 0; level < HALVINGS; level++) {
    for (let index = 0; index < BLOCKS; index++) x = taesdBlock(network, at(), x, channels);
    number++;
    x = conv(network, at(), doubled(graph, x), [channels, channels], { kernel: 3, bias: false });
  }
  x = taesdBlock(network, at(), x, channels);
  const image = conv(network, at(), x, [channels, COLOURS], { kernel: 3 });
  if (options === undefined) {
    graph.output(image, "image", "float", ["batch", COLOURS, "height*8", "width*8"]);
    return;
  }
  const clamped = graph.node("Clip", [image, graph.floats([0], []), graph.floats([1], [])]);
  graph.output(imagesOf(graph, clamped), "image", "float", ["batch", "height*8", "width*8", COLOURS]);
}

/** Writes the encoder: `image` [B, 3, 8h, 8w] in 0…1 to `latent` [B, 4, h, w], both as buildTaesdDecoder has them. */
export function buildTaesdEncoder(
  network: Network,
  { channels, latentChannels }: TaesdConfig,
  options?: TaesdOptions,
): void {
  const { graph } = network;
  const image =
    options === undefined
      ? graph.input("image", "float", ["batch", COLOURS, "height", "width"])
      : planesOf(graph, graph.input("image", "float", ["batch", "height", "width", COLOURS]));
  let number = 0;
  const at = (): string => `${TAESD_ENCODER}.${number++}`;
  let x = conv(network, at(), image, [COLOURS, channels], { kernel: 3 });
  x = taesdBlock(network, at(), x, channels);
  for (let level = 0; level < HALVINGS; level++) {
    x = conv(network, at(), x, [channels, channels], { kernel: 3, stride: 2, bias: false });
    for (let index = 0; index < BLOCKS; index++) x = taesdBlock(network, at(), x, channels);
  }
  const inUnits = conv(network, at(), x, [channels, latentChannels], { kernel: 3 });
  const latent =
    options === undefined ? inUnits : graph.node("Div", [inUnits, graph.floats([options.scaleFactor], [])]);
  graph.output(latent, "latent", "float", ["batch", latentChannels, "height/8", "width/8"]);
}

const relu = ({ graph }: Network, x: Value): Value => graph.node("Relu", [x]);

/** relu(x + three convolutions of x with relu between). */
function taesdBlock(network: Network, key: string, x: Value, channels: number): Value {
  const layer = (index: number, value: Value): Value =>
    conv(network, `${key}.conv.${index}`, value, [channels, channels], { kernel: 3 });
  const result = layer(4, relu(network, layer(2, relu(network, layer(0, x)))));
  return relu(network, add(network.graph, result, x));
}

/** Channels of latents: 4, and 16 of Flux (TAEF1). */
const LATENT_CHANNELS: readonly number[] = [4, 16];
const EXPECTED = `a tiny autoencoder of ${OWN_FAMILIES}`;
const IMAGE_CHANNELS = 3;
/** Layers of the longer half are numbered up to 19. */
const MOST_LAYERS = 32;
const NUMBERS = Array.from({ length: MOST_LAYERS }, (_, number) => number);

/** Keys of a file with one half: only numbers. */
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
export function taesdPart(file: ModelHeader): Part<TaesdConfig> | undefined {
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
 * Factor between the latents of nodes and those of a tiny autoencoder's file. Throws model.unsupported if they differ in
 * more, model.invalid.
 */
export async function taesdScale({ name, weights }: ModelHeader, read: ReadValues): Promise<number> {
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
  return weights.get("0.weight")?.shape[1] === IMAGE_CHANNELS ? ENCODER_ALONE : DECODER_ALONE;
}
