import { LatentkitError } from "../../../base/errors.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../../types.js";
import { type LabelSource, sizeLabel } from "../diffusion/conditioning.js";
import type { DiffusionNetwork, NamedTensors, NetworkCall, NetworkRun } from "../diffusion/model.js";
import type { OnnxModel } from "../session/onnx-model.js";
import type { Feed, Port } from "../session/sessions.js";

/** Sizes of an exported UNet. */
export interface ExportedUnetConfig {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim?: number;
  /** Whether it takes the label of SDXL. */
  readonly hasLabel: boolean;
  /** Width of that label as one vector, if the folder says. */
  readonly labelDim?: number;
}

/** Name of the timestep's axis in exports whose graph repeats one timestep. */
const ONE_STEP = "steps";

/** A UNet exported to ONNX. */
export class ExportedUnet implements DiffusionNetwork {
  readonly label: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim?: number;
  readonly #model: OnnxModel;
  readonly #config: ExportedUnetConfig;

  constructor(model: OnnxModel, config: ExportedUnetConfig) {
    this.#model = model;
    this.#config = config;
    this.label = model.label;
    this.inChannels = config.inChannels;
    this.outChannels = config.outChannels;
    this.contextDim = config.contextDim;
  }

  canShare(): boolean {
    return true;
  }

  labelInputs(entry: Conditioning[number], source: LabelSource): NamedTensors {
    const { hasLabel, labelDim } = this.#config;
    if (!hasLabel) return {};
    const { pooled, numbers } = sizeLabel(entry, source, labelDim);
    return { text_embeds: pooled, time_ids: Tensor.from(numbers, [1, numbers.length]) };
  }

  forRun({ steps }: SamplingRun): NetworkRun {
    return { predict: (call) => this.#predict(call, steps) };
  }

  async #predict({ x, timestep, context, labels, entry, signal }: NetworkCall, calls: number): Promise<Tensor> {
    if (entry[1].control !== undefined && entry[1].control !== null) {
      const message = `${this.label} is an exported ONNX model: ControlNets do not work with it.`;
      throw new LatentkitError("host.missing", message);
    }
    const [batch, , rows, columns] = x.shape as [number, number, number, number];
    const { inputs } = await this.#model.ports({ signal, calls });
    const feeds = {
      sample: x,
      timestep: this.#timestep(this.#model.inputOf("timestep", inputs), timestep, batch),
      encoder_hidden_states: context,
      ...labels,
    };
    const keep = ["encoder_hidden_states", ...Object.keys(labels)];
    const [out] = await this.#model.run(feeds, ["out_sample"], { signal, keep, calls });
    return this.#model.requireShape(out!, [batch, this.outChannels, rows, columns]);
  }

  /** The timestep in the shape of its input: a scalar, a list of one, or one for each latent. */
  #timestep({ type, shape }: Port, timestep: number, batch: number): Feed {
    const [side] = shape;
    const sides = shape.length === 0 ? [] : [side === ONE_STEP || side === 1 ? 1 : batch];
    if (!type.startsWith("int")) return Tensor.full(sides, timestep);
    if (Number.isInteger(timestep)) return { int64: new Array<number>(sides[0] ?? 1).fill(timestep), shape: sides };
    const message = `${this.label}: expected a whole timestep, the only kind this export takes, received ${timestep}.`;
    throw new LatentkitError("value.invalid", message);
  }
}
