import { describe, LatentkitError } from "../../../base/errors.js";
import { channelsFirst, channelsLast } from "../../../tensor/channels.js";
import { cropped, joined, narrowed } from "../../../tensor/parts.js";
import { fourSides } from "../../../tensor/shape.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Vae, Warn } from "../../types.js";
import type { ModelPart } from "../session/model-part.js";
import type { OnnxModel } from "../session/onnx-model.js";
import type { Runtime } from "../session/runtime.js";
import type { SessionSource } from "../session/sessions.js";
import { buildVaeDecoder, buildVaeEncoder, latentsOf, type VaeConfig, vaeWork } from "./build.js";
import { buildTaesdDecoder, buildTaesdEncoder, type TaesdConfig } from "./taesd.js";

/** The networks of a VAE, from either format. */
interface VaeNetworks {
  /** Name for messages, such as "VAE of anime/model.safetensors". */
  readonly label: string;
  readonly latentChannels: number;
  /** Pixels along a side of a latent's cell. */
  readonly cell: number;
  readonly hasEncoder: boolean;
  /** Encodes an image [B, cell · h, cell · w, 3] in 0…1 to a latent [B, latentChannels, h, w]. */
  encode(image: Tensor, warn?: Warn): Promise<Tensor>;
  /** Decodes a latent [B, latentChannels, h, w] to an image [B, cell · h, cell · w, 3] in 0…1. */
  decode(latent: Tensor): Promise<Tensor>;
}

/** The VAE of a model file, which runs in the runtime's process. */
export class CheckpointVae implements Vae {
  readonly cell: number;
  readonly #networks: VaeNetworks;

  constructor(networks: VaeNetworks) {
    this.cell = networks.cell;
    this.#networks = networks;
  }

  async encode(image: Tensor, warn?: Warn): Promise<Tensor> {
    const { label, cell, hasEncoder } = this.#networks;
    if (!hasEncoder) throw new LatentkitError("model.invalid", `${label} has no encoder.`);
    const [, height, width, channels] = fourSides("VAE encode", image, "[B, H, W, 3]");
    const [rows, columns] = [Math.floor(height / cell), Math.floor(width / cell)];
    if (channels !== 3 || rows === 0 || columns === 0) {
      const expected = `an image [B, H, W, 3] of at least ${cell} x ${cell} pixels`;
      throw new LatentkitError("tensor.bad-shape", `${label}: expected ${expected}, received ${describe(image)}.`);
    }
    const middle = {
      top: Math.floor((height % cell) / 2),
      left: Math.floor((width % cell) / 2),
      height: rows * cell,
      width: columns * cell,
    };
    return this.#networks.encode(cropped(image, 1, middle), warn);
  }

  async decode(latent: Tensor): Promise<Tensor> {
    const { label, latentChannels } = this.#networks;
    const [, channels, rows, columns] = fourSides("VAE decode", latent);
    if (channels !== latentChannels || rows === 0 || columns === 0)
      throw latentError(label, latentChannels, describe(latent));
    return this.#networks.decode(latent);
  }
}

/** Error of a latent that a network with a label does not take. */
export const latentError = (label: string, channels: number, received: string): LatentkitError =>
  new LatentkitError("tensor.bad-shape", `${label}: expected a latent [B, ${channels}, h, w], received ${received}.`);

/** A VAE of a model file: the trained one of a checkpoint, or a tiny one. */
type VaePart =
  | { readonly kind: "vae"; readonly part: ModelPart<VaeConfig> }
  | { readonly kind: "taesd"; readonly part: ModelPart<TaesdConfig>; readonly scaleFactor: number };

/** A VAE whose graphs are built over the weights of a file. */
export class BuiltVae implements VaeNetworks {
  readonly label: string;
  readonly latentChannels: number;
  readonly cell: number;
  readonly hasEncoder: boolean;
  readonly #runtime: Runtime;
  readonly #vae: VaePart;

  constructor(runtime: Runtime, vae: VaePart) {
    const { label, config } = vae.part;
    const latents = latentsOf({ normalised: false, ...config });
    this.label = label;
    this.latentChannels = latents.channels;
    this.cell = latents.cell;
    this.hasEncoder = config.hasEncoder;
    this.#runtime = runtime;
    this.#vae = vae;
  }

  encode(image: Tensor): Promise<Tensor> {
    const encoder = this.#encoder();
    return each(image, async (item) => (await this.#runtime.run(encoder, { image: item })).latent!);
  }

  decode(latent: Tensor): Promise<Tensor> {
    const decoder = this.#decoder();
    return each(latent, async (z) => (await this.#runtime.run(decoder, { z })).image!);
  }

  #encoder(): SessionSource {
    const vae = this.#vae;
    return vae.kind === "vae"
      ? vae.part.session("VAE encoder", (network, config) => buildVaeEncoder(network, config, { asImages: true }), {
          work: { image: vaeWork(vae.part.config).image },
        })
      : vae.part.session("TAESD encoder", (network, config) => buildTaesdEncoder(network, config, vae));
  }

  #decoder(): SessionSource {
    const vae = this.#vae;
    return vae.kind === "vae"
      ? vae.part.session("VAE decoder", (network, config) => buildVaeDecoder(network, config, { asImages: true }), {
          work: { z: vaeWork(vae.part.config).z },
        })
      : vae.part.session("TAESD decoder", (network, config) => buildTaesdDecoder(network, config, vae));
  }
}

/** Runs on one item after the other, which takes as long as on all at once, and the memory of one. */
async function each(batch: Tensor, run: (item: Tensor) => Promise<Tensor>): Promise<Tensor> {
  const [count = 0] = batch.shape;
  if (count === 1) return run(batch);
  const results: Tensor[] = [];
  for (let index = 0; index < count; index++) results.push(await run(narrowed(batch, 0, index, 1)));
  return joined(results, 0);
}

/** Everything that an exported VAE is made of. */
interface ExportedVaeSource {
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
