import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../../types.js";
import { type LabelSource, labelVectors, sizeLabel } from "../diffusion/conditioning.js";
import type { DiffusionNetwork, NamedTensors, NetworkCall, NetworkRun } from "../diffusion/model.js";
import type { AdapterUse } from "../ip-adapter/use.js";
import type { LoraTarget } from "../lora/places.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { SessionSource } from "../session/sessions.js";
import type { Network } from "../weights/network.js";
import { buildUnet, type UnetConfig, unetWork } from "./build.js";
import { adapterAttention, requireFit } from "./image-adapters.js";
import { unetPlaces } from "./lora.js";
import { RunAdapters } from "./run-adapters.js";
import { RunControls } from "./run-controls.js";

/** A UNet whose graph is built over the weights of a file: LoRAs change it and control nets guide it. */
export class BuiltUnet implements DiffusionNetwork {
  readonly label: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim: number;
  readonly pooledWidth?: number;

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<UnetConfig>,
    readonly adapters: readonly AdapterUse[] = [],
  ) {
    const { label, config } = part;
    this.label = label;
    this.inChannels = config.inChannels;
    this.outChannels = config.outChannels;
    this.contextDim = config.contextDim;
    this.pooledWidth = config.pooledWidth;
  }

  get target(): LoraTarget {
    return { weights: this.part.weights, places: unetPlaces, inputs: "input_blocks.0.0.weight" };
  }

  adapted(adapter: Adapter): BuiltUnet {
    return new BuiltUnet(this.runtime, this.part.adapted(adapter), this.adapters);
  }

  shown(use: AdapterUse): BuiltUnet {
    requireFit(use, this.part);
    return new BuiltUnet(this.runtime, this.part, [...this.adapters, use]);
  }

  canShare(): boolean {
    return true;
  }

  labelInputs(entry: Conditioning[number], source: LabelSource): NamedTensors {
    const { labelDim } = this.part.config;
    return labelDim === undefined ? {} : { y: labelVectors(sizeLabel(entry, source, labelDim)) };
  }

  forRun(run: SamplingRun): NetworkRun {
    const controls = new RunControls(this.runtime, this.part, run);
    const adapters = new RunAdapters(this.adapters, this.part.config, run);
    return { predict: (call) => this.#predict(call, { controls, adapters, calls: run.steps }) };
  }

  async #predict({ labels, entry, entries, sigma, signal, ...call }: NetworkCall, run: UnetRun) {
    const { x, noisy, context } = call;
    const feeds = { x, timestep: Tensor.full([x.shape[0]!], call.timestep), context, ...labels };
    const controls = await run.controls.of(entry, { ...feeds, x: noisy }, sigma, signal);
    const { count, stages, zeros, added, additions } = controls;
    const kept = { ...run.adapters.of({ x, entries, sigma }), ...additions };
    const options = { signal, keep: ["context", "y", ...Object.keys(kept)], calls: run.calls, stages };
    const { out } = await this.runtime.run(this.#session(count, added), { ...feeds, ...zeros, ...kept }, options);
    return out!;
  }

  /** The session for a number of control nets, and for features that are added after blocks. */
  #session(controls: number, added: readonly string[]): SessionSource {
    const files = [...new Set(this.adapters.map(({ keys }) => keys))];
    const layouts = this.adapters.map(({ keys, isSdxl, hasMiddle }) => ({
      network: files.indexOf(keys),
      keys: keys.config,
      isSdxl,
      hasMiddle,
    }));
    const variant = [
      "UNet",
      ...(controls === 0 ? [] : [`with ${controls} control nets`]),
      ...added.map((key) => `with features after ${key}`),
      ...layouts.map(({ network, hasMiddle }) => `with adapter ${network}${hasMiddle ? " and its middle" : ""}`),
    ].join(" ");
    const build = (network: Network, config: UnetConfig, others: readonly Network[]) => {
      const further = layouts.length === 0 ? undefined : adapterAttention(others, layouts, config);
      buildUnet(network, config, { controls, further, added });
    };
    return this.part.session(variant, build, { work: unetWork(this.part.config), beside: files });
  }
}

/** Everything that one run of a UNet keeps. */
interface UnetRun {
  readonly controls: RunControls;
  readonly adapters: RunAdapters;
  /** Calls to expect. */
  readonly calls: number;
}
