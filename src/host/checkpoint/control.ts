import { describe, LatentkitError } from "../../base/errors.js";
import { firstChannels } from "../../tensor/channels.js";
import { channelsFirst } from "../../tensor/image/planes.js";
import { weightedSum } from "../../tensor/ops.js";
import { cycled } from "../../tensor/parts.js";
import { resizeImage } from "../../tensor/resize.js";
import { borderAt } from "../../tensor/sampling/percent-to-sigma.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, Control, SamplingRun } from "../types.js";
import { CheckpointControlNet } from "./control-net.js";
import { type Adapter, type ModelPart, stateOf } from "./model-part.js";
import { buildControlNet } from "./networks/controlnet.js";
import type { UnetConfig } from "./networks/unet.js";
import type { Runtime } from "./runtime/runtime.js";
import { floatsOf, type WeightChange } from "./weights/network.js";

/** Inputs that a network takes beside those of control nets. */
export interface NetworkFeeds {
  readonly x: Tensor;
  readonly timestep: Tensor;
  readonly context: Tensor;
  readonly y?: Tensor;
}

/** Pixels along a side of a latent's cell. */
const CELL = 8;
const COLOURS = 3;

// decision 222
/** Control nets of a run, with the UNet that they guide. */
export class RunControls {
  readonly #runtime: Runtime;
  readonly #unet: ModelPart<UnetConfig>;
  readonly #run: SamplingRun;
  /** Hints in the size and number of the last call. */
  readonly #hints = new WeakMap<Control, Tensor>();
  /** Nets that are differences, with the UNet's weights added. */
  readonly #sums = new WeakMap<object, CheckpointControlNet["part"]>();

  constructor(runtime: Runtime, unet: ModelPart<UnetConfig>, run: SamplingRun) {
    this.#runtime = runtime;
    this.#unet = unet;
    this.#run = run;
  }

  /**
   * Inputs `control_N` and `control_middle` of the UNet for a call whose entries share their control: the sums of all nets
   * that count at this noise level. Undefined for entries without control.
   */
  async feeds(
    entry: Conditioning[number],
    feeds: NetworkFeeds,
    sigma: number,
    signal?: AbortSignal,
  ): Promise<Record<string, Tensor> | undefined> {
    const first = entry[1].control as Control | undefined | null;
    if (first === undefined || first === null) return undefined;
    let sums: Record<string, Tensor> | undefined;
    for (let control: Control | undefined = first; control !== undefined; control = control.previous) {
      if (!this.#counts(control, sigma)) continue;
      const outputs = await this.#outputs(control, feeds, signal);
      sums = sums === undefined ? outputs : added(sums, outputs);
    }
    return sums ?? this.#zeros();
  }

  #counts({ start, end }: Control, sigma: number): boolean {
    const { sampling } = this.#run;
    return sigma <= borderAt(sampling, start) && sigma >= borderAt(sampling, end);
  }

  #outputs(control: Control, feeds: NetworkFeeds, signal?: AbortSignal): Promise<Record<string, Tensor>> {
    const part = this.#partOf(control);
    const { config } = part;
    const session = part.session("control net", buildControlNet);
    const hint = this.#hintOf(control, feeds.x);
    const { y, ...others } = feeds;
    const inputs = {
      ...others,
      ...(config.labelDim === undefined || y === undefined ? {} : { y }),
      hint,
      strength: Tensor.full([1], control.strength),
    };
    const keep = ["context", "y", "hint"];
    return this.#runtime.run(session, inputs, { signal, keep, calls: this.#run.steps });
  }

  /** The net of a control, with what the UNet's own weights add to it. Fails with host.missing and value.invalid. */
  #partOf({ net }: Control): CheckpointControlNet["part"] {
    if (!(net instanceof CheckpointControlNet))
      throw new LatentkitError("host.missing", 'host "checkpoint": it cannot run a ControlNet of another host.');
    const { part, isDifference } = net;
    const [own, other] = [part.config, this.#unet.config];
    const isSame = own.contextDim === other.contextDim && own.labelDim === other.labelDim;
    const hasBlocks =
      own.input.length === other.input.length &&
      own.input.every(({ channels }, index) => channels === other.input[index]!.channels);
    if (!isSame || !hasBlocks) {
      const message = `${part.label} is for models of another family than ${this.#unet.label}.`;
      throw new LatentkitError("value.invalid", message);
    }
    if (isDifference && own.inChannels !== other.inChannels) {
      const message = `${part.label} is stored as differences, which need a model of ${own.inChannels} input channels; ${this.#unet.label} has ${other.inChannels}.`;
      throw new LatentkitError("value.invalid", message);
    }
    if (!isDifference) return part;
    const sum = this.#sums.get(part) ?? part.adapted(sumWith(this.#unet));
    this.#sums.set(part, sum);
    return sum;
  }

  #hintOf(control: Control, { shape }: Tensor): Tensor {
    const [items, , rows, columns] = shape as [number, number, number, number];
    const [height, width] = [rows * CELL, columns * CELL];
    const known = this.#hints.get(control);
    const isFit = known?.shape[2] === height && known.shape[3] === width && [1, items].includes(known.shape[0]!);
    if (known !== undefined && isFit) return known;
    fourSides("ControlNet", control.hint, "[B, H, W, C]");
    const colours = firstChannels(control.hint, COLOURS);
    const batch = this.#run.latent.shape[0]!;
    const sized = resizeImage(colours, { method: "nearest-exact", height, width, crop: "center" });
    const planes = channelsFirst(sized);
    const hint = planes.shape[0] === 1 ? planes : cycled(cycled(planes, batch), items);
    this.#hints.set(control, hint);
    return hint;
  }

  /** Inputs that change nothing. */
  #zeros(): Record<string, Tensor> {
    const { input, middle } = this.#unet.config;
    const zero = (channels: number): Tensor => Tensor.zeros([1, channels, 1, 1]);
    const entries = input.map(({ channels }, index) => [`control_${index}`, zero(channels)] as const);
    return { ...Object.fromEntries(entries), control_middle: zero((middle ?? input.at(-1)!).channels) };
  }
}

const added = (a: Record<string, Tensor>, b: Record<string, Tensor>): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(a).map(([name, value]) => [
      name,
      weightedSum([
        [1, value],
        [1, requireOutput(b, name)],
      ]),
    ]),
  );

function requireOutput(outputs: Record<string, Tensor>, name: string): Tensor {
  const output = outputs[name];
  if (output !== undefined) return output;
  throw new LatentkitError("value.invalid", `ControlNets of one model have different outputs: ${describe(name)}.`);
}

/** Adds the weights of a UNet to those of the same key. */
function sumWith({ file, weights }: ModelPart<unknown>): Adapter {
  const changes = new Map<string, readonly WeightChange[]>();
  for (const [key, stored] of weights) {
    changes.set(key, [(graph, weight) => graph.node("Add", [weight, floatsOf(graph, stored)])]);
  }
  return { key: `sum with ${stateOf(file)}`, file, changes };
}
