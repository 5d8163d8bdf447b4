import { describe, LatentkitError } from "../../base/errors.js";
import { cropped } from "../../tensor/parts.js";
import { fourSides } from "../../tensor/shape.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { Vae } from "../types.js";
import { type ModelPart, sessionOf } from "./model-part.js";
import { buildVaeDecoder, buildVaeEncoder, type VaeConfig } from "./networks/vae.js";
import type { Runtime } from "./runtime/client.js";

/** Side of a latent cell in pixels. */
const CELL = 8;

/** The VAE of a model file, which runs in the runtime's process. */
export class CheckpointVae implements Vae {
  readonly #runtime: Runtime;
  readonly #part: ModelPart<VaeConfig>;

  constructor(runtime: Runtime, part: ModelPart<VaeConfig>) {
    this.#runtime = runtime;
    this.#part = part;
  }

  async encode(image: Tensor): Promise<Tensor> {
    const { label, config } = this.#part;
    const [, height, width, channels] = fourSides("VAE encode", image, "[B, H, W, 3]");
    const sides = [height, width].map((side) => side - (side % CELL)) as [number, number];
    if (channels !== 3 || sides.includes(0)) {
      const expected = `an image [B, H, W, 3] of at least ${CELL} x ${CELL} pixels`;
      throw new LatentkitError("tensor.bad-shape", `${label}: expected ${expected}, received ${describe(image)}.`);
    }
    const middle = {
      top: Math.floor((height % CELL) / 2),
      left: Math.floor((width % CELL) / 2),
      height: sides[0],
      width: sides[1],
    };
    const session = sessionOf(this.#part, "VAE encoder", (network) =>
      buildVaeEncoder(network, config, { asImages: true }),
    );
    const { latent } = await this.#runtime.run(session, { image: cropped(image, 1, middle) }, {});
    return latent!;
  }

  async decode(latent: Tensor): Promise<Tensor> {
    const { label, config } = this.#part;
    const [, channels, rows, columns] = fourSides("VAE decode", latent);
    if (channels !== config.latentChannels || rows === 0 || columns === 0) {
      const expected = `a latent [B, ${config.latentChannels}, h, w]`;
      throw new LatentkitError("tensor.bad-shape", `${label}: expected ${expected}, received ${describe(latent)}.`);
    }
    const session = sessionOf(this.#part, "VAE decoder", (network) =>
      buildVaeDecoder(network, config, { asImages: true }),
    );
    const { image } = await this.#runtime.run(session, { z: latent }, {});
    return image!;
  }
}
