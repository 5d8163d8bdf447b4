import { describe, LatentkitError } from "../../base/errors.js";
import { cropped } from "../../tensor/parts.js";
import { fourSides } from "../../tensor/shape.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { Vae } from "../types.js";
import type { ModelPart } from "./model-part.js";
import { buildTaesdDecoder, buildTaesdEncoder, type TaesdConfig } from "./networks/taesd.js";
import { buildVaeDecoder, buildVaeEncoder, type VaeConfig } from "./networks/vae.js";
import type { Runtime } from "./runtime/client.js";
import type { SessionSource } from "./runtime/sessions.js";

/** Side of a latent cell in pixels. */
const CELL = 8;

/** A VAE of a model file: the trained one of a checkpoint, or a tiny one. */
export type VaePart =
  | { readonly kind: "vae"; readonly part: ModelPart<VaeConfig> }
  | { readonly kind: "taesd"; readonly part: ModelPart<TaesdConfig>; readonly scaleFactor: number };

/** The VAE of a model file, which runs in the runtime's process. */
export class CheckpointVae implements Vae {
  readonly #runtime: Runtime;
  readonly #vae: VaePart;

  constructor(runtime: Runtime, vae: VaePart) {
    this.#runtime = runtime;
    this.#vae = vae;
  }

  async encode(image: Tensor): Promise<Tensor> {
    const { label, config } = this.#vae.part;
    if (!config.hasEncoder) throw new LatentkitError("model.invalid", `${label} has no encoder.`);
    const [, height, width, channels] = fourSides("VAE encode", image, "[B, H, W, 3]");
    const [rows, columns] = [Math.floor(height / CELL), Math.floor(width / CELL)];
    if (channels !== 3 || rows === 0 || columns === 0) {
      const expected = `an image [B, H, W, 3] of at least ${CELL} x ${CELL} pixels`;
      throw new LatentkitError("tensor.bad-shape", `${label}: expected ${expected}, received ${describe(image)}.`);
    }
    const middle = {
      top: Math.floor((height % CELL) / 2),
      left: Math.floor((width % CELL) / 2),
      height: rows * CELL,
      width: columns * CELL,
    };
    const { latent } = await this.#runtime.run(this.#encoder(), { image: cropped(image, 1, middle) });
    return latent!;
  }

  async decode(latent: Tensor): Promise<Tensor> {
    const { label, config } = this.#vae.part;
    const [, channels, rows, columns] = fourSides("VAE decode", latent);
    if (channels !== config.latentChannels || rows === 0 || columns === 0) {
      const expected = `a latent [B, ${config.latentChannels}, h, w]`;
      throw new LatentkitError("tensor.bad-shape", `${label}: expected ${expected}, received ${describe(latent)}.`);
    }
    const { image } = await this.#runtime.run(this.#decoder(), { z: latent });
    return image!;
  }

  #encoder(): SessionSource {
    const vae = this.#vae;
    return vae.kind === "vae"
      ? vae.part.session("VAE encoder", (network, config) => buildVaeEncoder(network, config, { asImages: true }))
      : vae.part.session("TAESD encoder", (network, config) => buildTaesdEncoder(network, config, vae));
  }

  #decoder(): SessionSource {
    const vae = this.#vae;
    return vae.kind === "vae"
      ? vae.part.session("VAE decoder", (network, config) => buildVaeDecoder(network, config, { asImages: true }))
      : vae.part.session("TAESD decoder", (network, config) => buildTaesdDecoder(network, config, vae));
  }
}
