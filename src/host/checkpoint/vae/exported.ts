import { channelsFirst, channelsLast } from "../../../tensor/channels.js";
import { narrowed } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Warn } from "../../types.js";
import type { OnnxModel } from "../session/onnx-model.js";
import type { VaeNetworks } from "./model.js";

/** Everything that an exported VAE is made of. */
export interface ExportedVaeSource {
  readonly label: string;
  readonly decoder: OnnxModel;
  readonly encoder?: OnnxModel;
  readonly latentChannels: number;
}

/** Means and logarithms of variances of latents. */
const PARAMETERS = "latent_parameters";
/** Latents that the graph has drawn itself, without a seed. */
const DRAWN = "latent_sample";
/** Side of a latent cell in pixels. */
const CELL = 8;
const COLOURS = 3;

/** A VAE exported to ONNX as an encoder and a decoder. */
export class ExportedVae implements VaeNetworks {
  readonly label: string;
  readonly latentChannels: number;
  readonly cell = CELL;
  readonly hasEncoder: boolean;
  readonly #source: ExportedVaeSource;

  constructor(source: ExportedVaeSource) {
    this.#source = source;
    this.label = source.label;
    this.latentChannels = source.latentChannels;
    this.hasEncoder = source.encoder !== undefined;
  }

  async encode(image: Tensor, warn?: Warn): Promise<Tensor> {
    const { latentChannels } = this.#source;
    const encoder = this.#source.encoder!;
    const { outputs } = await encoder.ports();
    const name = encoder.outputOf([PARAMETERS, DRAWN], outputs);
    if (name === DRAWN)
      warn?.(`${encoder.label} draws noise without a seed: encoding the same picture again gives a different latent.`);
    const sample = channelsFirst(image);
    const { data } = sample;
    for (let i = 0; i < data.length; i++) data[i] = 2 * data[i]! - 1;
    const [latent] = await encoder.run({ sample }, [name]);
    const [batch, height, width] = image.shape as [number, number, number];
    const channels = name === DRAWN ? latentChannels : 2 * latentChannels;
    encoder.requireShape(latent!, [batch, channels, height / CELL, width / CELL]);
    return name === DRAWN ? latent! : narrowed(latent!, 1, 0, latentChannels);
  }

  async decode(latent: Tensor): Promise<Tensor> {
    const { decoder } = this.#source;
    const [batch, , rows, columns] = latent.shape as [number, number, number, number];
    const [sample] = await decoder.run({ latent_sample: latent }, ["sample"]);
    const image = channelsLast(decoder.requireShape(sample!, [batch, COLOURS, rows * CELL, columns * CELL]));
    const { data } = image;
    for (let i = 0; i < data.length; i++) data[i] = Math.min(1, Math.max(0, (data[i]! + 1) / 2));
    return image;
  }
}
