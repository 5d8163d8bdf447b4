import { describe, LatentkitError } from "../../base/errors.js";
import { cropped } from "../../tensor/parts.js";
import { fourSides } from "../../tensor/shape.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { Vae, Warn } from "../types.js";

/** Side of a latent cell in pixels. */
const CELL = 8;

/** The networks of a VAE, from either format. */
export interface VaeNetworks {
  /** Name for messages, such as "VAE of anime/model.safetensors". */
  readonly label: string;
  readonly latentChannels: number;
  readonly hasEncoder: boolean;
  /** Encodes an image [B, 8h, 8w, 3] in 0…1 to a latent [B, latentChannels, h, w]. */
  encode(image: Tensor, warn?: Warn): Promise<Tensor>;
  /** Decodes a latent [B, latentChannels, h, w] to an image [B, 8h, 8w, 3] in 0…1. */
  decode(latent: Tensor): Promise<Tensor>;
}

/** The VAE of a model file, which runs in the runtime's process. */
export class CheckpointVae implements Vae {
  readonly #networks: VaeNetworks;

  constructor(networks: VaeNetworks) {
    this.#networks = networks;
  }

  async encode(image: Tensor, warn?: Warn): Promise<Tensor> {
    const { label, hasEncoder } = this.#networks;
    if (!hasEncoder) throw new LatentkitError("model.invalid", `${label} has no encoder.`);
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
    return this.#networks.encode(cropped(image, 1, middle), warn);
  }

  async decode(latent: Tensor): Promise<Tensor> {
    const { label, latentChannels } = this.#networks;
    const [, channels, rows, columns] = fourSides("VAE decode", latent);
    if (channels !== latentChannels || rows === 0 || columns === 0) {
      const expected = `a latent [B, ${latentChannels}, h, w]`;
      throw new LatentkitError("tensor.bad-shape", `${label}: expected ${expected}, received ${describe(latent)}.`);
    }
    return this.#networks.decode(latent);
  }
}
