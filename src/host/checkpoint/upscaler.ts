import type { Tensor } from "../../tensor/tensor.js";
import type { UpscaleModel } from "../types.js";
import type { ModelPart } from "./model-part.js";
import { buildUpscaler, type UpscalerConfig } from "./networks/upscaler.js";
import type { Runtime } from "./runtime/runtime.js";

/** An upscale model of a file, which runs in the runtime's process. */
export class CheckpointUpscaler implements UpscaleModel {
  readonly scale: number;
  readonly #runtime: Runtime;
  readonly #part: ModelPart<UpscalerConfig>;

  constructor(runtime: Runtime, part: ModelPart<UpscalerConfig>) {
    this.scale = part.config.scale;
    this.#runtime = runtime;
    this.#part = part;
  }

  async upscale(image: Tensor, signal?: AbortSignal): Promise<Tensor> {
    const session = this.#part.session("upscaler", (network, config) =>
      buildUpscaler(network, config, { asImages: true }),
    );
    const { enlarged } = await this.#runtime.run(session, { image }, { signal });
    return enlarged!;
  }
}
