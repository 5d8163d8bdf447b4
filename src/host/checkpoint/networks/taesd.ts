import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { add, conv, doubled, imagesOf, planesOf } from "./layers.js";

/** Sizes of a tiny autoencoder (TAESD): a small VAE for previews, whose layers are numbered. */
export interface TaesdConfig {
  /** 64 in the published files. */
  readonly channels: number;
  readonly latentChannels: number;
  readonly hasDecoder: boolean;
  readonly hasEncoder: boolean;
}

export const TAESD_DECODER = "taesd_decoder";
export const TAESD_ENCODER = "taesd_encoder";

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
    for (let index = 0; index < BLOCKS; index++) x = block(network, at(), x, channels);
    number++;
    x = conv(network, at(), doubled(graph, x), [channels, channels], { kernel: 3, bias: false });
  }
  x = block(network, at(), x, channels);
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
  x = block(network, at(), x, channels);
  for (let level = 0; level < HALVINGS; level++) {
    x = conv(network, at(), x, [channels, channels], { kernel: 3, stride: 2, bias: false });
    for (let index = 0; index < BLOCKS; index++) x = block(network, at(), x, channels);
  }
  const inUnits = conv(network, at(), x, [channels, latentChannels], { kernel: 3 });
  const latent =
    options === undefined ? inUnits : graph.node("Div", [inUnits, graph.floats([options.scaleFactor], [])]);
  graph.output(latent, "latent", "float", ["batch", latentChannels, "height/8", "width/8"]);
}

const relu = ({ graph }: Network, x: Value): Value => graph.node("Relu", [x]);

/** relu(x + three convolutions of x with relu between). */
function block(network: Network, key: string, x: Value, channels: number): Value {
  const layer = (index: number, value: Value): Value =>
    conv(network, `${key}.conv.${index}`, value, [channels, channels], { kernel: 3 });
  const result = layer(4, relu(network, layer(2, relu(network, layer(0, x)))));
  return relu(network, add(network.graph, result, x));
}
