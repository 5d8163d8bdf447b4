import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../../types.js";
import { type LabelSource, labelVectors, sizeLabel } from "../diffusion/conditioning.js";
import type { DiffusionNetwork, NamedTensors, NetworkCall, NetworkRun } from "../diffusion/model.js";
import type { LoraTarget } from "../lora/places.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { Network } from "../weights/network.js";
import { buildUnet, type UnetConfig, unetWork } from "./build.js";
import { RunControls } from "./control.js";
import { unetPlaces } from "./lora.js";

/** A UNet whose graph is built over the weights of a file: LoRAs change it and control nets guide it. */
export class BuiltUnet implements DiffusionNetwork {
  readonly label: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim: number;

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<UnetConfig>,
  ) {
    const { label, config } = part;
    this.label = label;
    this.inChannels = config.inChannels;
    this.outChannels = config.outChannels;
    this.contextDim = config.contextDim;
  }

  get target(): LoraTarget {
    return { weights: this.part.weights, places: unetPlaces };
  }

  adapted(adapter: Adapter): BuiltUnet {
    return new BuiltUnet(this.runtime, this.part.adapted(adapter));
  }

  canShare(): boolean {
    return true;
  }

  labelInputs(entry: Conditioning[number], source: LabelSource): NamedTensors {
    const { labelDim } = this.part.config;
    return labelDim === undefined ? {} : { y: labelVectors(sizeLabel(entry, source, labelDim)) };
  }

  forRun(run: SamplingRun): NetworkRun {
    const controls = new RunControls(this.part, run);
    return { predict: (call) => this.#predict(call, controls, run.steps) };
  }

  async #predict({ labels, entry, sigma, signal, ...call }: NetworkCall, controls: RunControls, calls: number) {
    const { x, noisy, context } = call;
    const feeds = { x, timestep: Tensor.full([x.shape[0]!], call.timestep), context, ...labels };
    const { count, stages, zeros } = controls.of(entry, { ...feeds, x: noisy }, sigma);
    const variant = count === 0 ? "UNet" : `UNet with ${count} control nets`;
    const build = (network: Network, config: UnetConfig) => buildUnet(network, config, { controls: count });
    const session = this.part.session(variant, build, { work: unetWork(this.part.config) });
    const options = { signal, keep: ["context", "y"], calls, stages };
    const { out } = await this.runtime.run(session, { ...feeds, ...zeros }, options);
    return out!;
  }
}
