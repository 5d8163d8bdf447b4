import type { Tensor } from "../../tensor/tensor.js";
import type { ModelPart } from "./model-part.js";
import { buildTaesdDecoder, buildTaesdEncoder, type TaesdConfig } from "./networks/taesd.js";
import { buildVaeDecoder, buildVaeEncoder, type VaeConfig, vaeWork } from "./networks/vae.js";
import type { Runtime } from "./runtime/runtime.js";
import type { SessionSource } from "./runtime/sessions.js";
import type { VaeNetworks } from "./vae.js";

/** A VAE of a model file: the trained one of a checkpoint, or a tiny one. */
export type VaePart =
  | { readonly kind: "vae"; readonly part: ModelPart<VaeConfig> }
  | { readonly kind: "taesd"; readonly part: ModelPart<TaesdConfig>; readonly scaleFactor: number };

/** A VAE whose graphs are built over the weights of a file. */
export class BuiltVae implements VaeNetworks {
  readonly label: string;
  readonly latentChannels: number;
  readonly hasEncoder: boolean;
  readonly #runtime: Runtime;
  readonly #vae: VaePart;

  constructor(runtime: Runtime, vae: VaePart) {
    const { label, config } = vae.part;
    this.label = label;
    this.latentChannels = config.latentChannels;
    this.hasEncoder = config.hasEncoder;
    this.#runtime = runtime;
    this.#vae = vae;
  }

  async encode(image: Tensor): Promise<Tensor> {
    const { latent } = await this.#runtime.run(this.#encoder(), { image });
    return latent!;
  }

  async decode(latent: Tensor): Promise<Tensor> {
    const { image } = await this.#runtime.run(this.#decoder(), { z: latent });
    return image!;
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
