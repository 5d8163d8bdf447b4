import { describe, LatentkitError } from "../../base/errors.js";
import { scale } from "../../tensor/ops.js";
import { cycled, joined } from "../../tensor/parts.js";
import type { ModelSampling } from "../../tensor/sampling/model-sampling.js";
import { fourSides } from "../../tensor/shape.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Conditioning, Model, ModelPatch, SamplingRun } from "../types.js";
import { RunControls } from "./control.js";
import { inArea, inpaintChannels } from "./inpaint-channels.js";
import type { ModelPart } from "./model-part.js";
import { buildUnet, type UnetConfig } from "./networks/unet.js";
import { cleanOf, inputScale, type Reading } from "./reading.js";
import type { Family } from "./recognition/recognise.js";
import type { Runtime } from "./runtime/client.js";
import { sizeLabel } from "./size-label.js";

/** Everything that a model of a checkpoint is made of. */
export interface ModelSource {
  readonly runtime: Runtime;
  readonly unet: ModelPart<UnetConfig>;
  readonly family: Family;
  readonly sampling: ModelSampling;
  readonly reading: Reading;
}

/** Calls of the network that a run of unknown length is planned for. */
const USUAL_CALLS = 20;
/** Sets of conditioning whose inputs stay composed in a run: a regional prompt with ranges has a few. */
const COMPOSED = 8;

// decision 218
/** The diffusion model of a checkpoint, which predicts in the runtime's process. */
export class CheckpointModel implements Model {
  readonly sampling: ModelSampling;

  constructor(readonly source: ModelSource) {
    this.sampling = source.sampling;
  }

  forRun(run: SamplingRun): Required<Pick<Model, "predict">> {
    return new ModelRun(this.source, run);
  }

  predict(x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor> {
    const [items, ...sides] = fourSides("predict", x);
    const latent = Tensor.zeros([Math.ceil(items / Math.max(1, cond.length)), ...sides]);
    const run = { sampling: this.sampling, latent, negative: [], steps: USUAL_CALLS };
    return this.forRun(run).predict(x, sigma, cond, signal);
  }

  patch(patch: ModelPatch): Model {
    const reading = READINGS[patch.node]?.[String(patch.inputs.sampling)];
    if (reading === undefined) throw unsupported(patch);
    return new CheckpointModel({ ...this.source, reading });
  }
}

/** Readings of the network that nodes ask for, by their names and those of their input `sampling`. */
const READINGS: Readonly<Record<string, Readonly<Record<string, Reading>>>> = {
  ModelSamplingDiscrete: { eps: "eps", v_prediction: "v", lcm: "lcm", x0: "x0" },
  ModelSamplingContinuousEDM: { v_prediction: "edm-v", edm: "edm", "edm_playground_v2.5": "edm", eps: "eps" },
  ModelSamplingContinuousV: { v_prediction: "edm-v" },
};

const unsupported = ({ node, inputs }: ModelPatch): LatentkitError => {
  const change = Object.hasOwn(READINGS, node) ? `read its models as ${describe(inputs.sampling)}` : `apply ${node}`;
  return new LatentkitError("host.missing", `host "checkpoint": it cannot ${change}.`);
};

/** Inputs of the network that stay the same for a set of conditionings. */
interface Composed {
  readonly entries: Conditioning;
  readonly items: number;
  readonly context: Tensor;
  readonly y: Tensor | undefined;
  readonly inpaint: Tensor | undefined;
}

/** The predictions of a model in one run. */
class ModelRun {
  readonly #source: ModelSource;
  readonly #run: SamplingRun;
  readonly #controls: RunControls;
  readonly #composed: Composed[] = [];

  constructor(source: ModelSource, run: SamplingRun) {
    this.#source = source;
    this.#run = run;
    this.#controls = new RunControls(source.runtime, source.unet, run);
  }

  async predict(x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor> {
    this.#refuseMisfit(x, sigma, cond);
    const { runtime, unet, reading } = this.#source;
    const { sampling, steps } = this.#run;
    const timestep = sampling.timestep(sigma);
    const { context, y, inpaint } = this.#compose(x, cond);
    const scaled = scale(x, inputScale(reading, sigma));
    const feeds = {
      x: inpaint === undefined ? scaled : joined([scaled, inpaint], 1),
      timestep: Tensor.full([x.shape[0]!], timestep),
      context,
      ...(y === undefined ? {} : { y }),
    };
    const control = await this.#controls.feeds(cond[0]!, feeds, sigma, signal);
    const session =
      control === undefined
        ? unet.session("UNet", buildUnet)
        : unet.session("UNet with control", (network, config) => buildUnet(network, config, { control: true }));
    const options = { signal, keep: ["context", "y"], calls: steps };
    const { out } = await runtime.run(session, { ...feeds, ...control }, options);
    return cleanOf(reading, { x, out: out!, sigma, timestep });
  }

  /** The context, label and extra channels of a call. Tensors are the same at every step, so that they are sent once. */
  #compose(x: Tensor, cond: Conditioning): Composed {
    const [items = 0, , rows, columns] = x.shape;
    const isSame = ({ entries, items: count, inpaint }: Composed): boolean =>
      count === items &&
      entries.length === cond.length &&
      entries.every((entry, i) => entry === cond[i]) &&
      (inpaint === undefined || (inpaint.shape[2] === rows && inpaint.shape[3] === columns));
    const known = this.#composed.find(isSame);
    if (known !== undefined) return known;
    const batch = items / cond.length;
    const each = (part: (entry: Conditioning[number]) => Tensor): Tensor =>
      joined(
        cond.map((entry) => cycled(part(entry), batch)),
        0,
      );
    const { config } = this.#source.unet;
    const tokens = cond.map(([tensor]) => this.#requireContext(tensor)).reduce(commonMultiple, 1);
    const composed: Composed = {
      entries: [...cond],
      items,
      context: each(([tensor]) => lengthened(tensor, tokens)),
      y: config.labelDim === undefined ? undefined : each((entry) => this.#label(entry, config.labelDim!)),
      inpaint: this.#takesMask() ? each((entry) => this.#extraChannels(entry, rows!, columns!)) : undefined,
    };
    if (this.#composed.length === COMPOSED) this.#composed.shift();
    this.#composed.push(composed);
    return composed;
  }

  #takesMask(): boolean {
    const { config } = this.#source.unet;
    return config.inChannels > config.outChannels;
  }

  #extraChannels(entry: Conditioning[number], rows: number, columns: number): Tensor {
    const channels = inpaintChannels(entry, this.#run);
    const isWhole = channels.shape[2] === rows && channels.shape[3] === columns;
    return isWhole ? channels : inArea(channels, entry, this.#run);
  }

  #label(entry: Conditioning[number], width: number): Tensor {
    const [, , rows, columns] = this.#run.latent.shape as [number, number, number, number];
    return sizeLabel(entry, {
      kind: this.#source.family === "sdxl-refiner" ? "sdxl-refiner" : "sdxl",
      width,
      cells: [rows, columns],
      isNegative: this.#run.negative.includes(entry),
    });
  }

  /** Number of tokens of a context. Fails with value.invalid for that of another family's text encoder. */
  #requireContext(tensor: Tensor): number {
    const { config, label } = this.#source.unet;
    const [count, tokens, width] = tensor.shape;
    if (tensor.shape.length === 3 && count! > 0 && tokens! > 0 && width === config.contextDim) return tokens!;
    const expected = `[n, tokens, ${config.contextDim}], as its own text encoder makes it`;
    const message = `${label}: expected a conditioning ${expected}, received ${describe(tensor)}.`;
    throw new LatentkitError("value.invalid", message);
  }

  #refuseMisfit(x: Tensor, sigma: number, cond: Conditioning): void {
    const [batch, channels, rows, columns] = fourSides("predict", x);
    const { config, label } = this.#source.unet;
    if (channels !== config.outChannels || rows === 0 || columns === 0) {
      const message = `${label}: expected a latent [B, ${config.outChannels}, h, w], received ${describe(x)}.`;
      throw new LatentkitError("tensor.bad-shape", message);
    }
    if (!Number.isFinite(sigma) || sigma < 0)
      throw new LatentkitError("value.out-of-range", `predict: expected sigma from 0, received ${describe(sigma)}.`);
    if (cond.length === 0 || batch % cond.length !== 0) {
      const message = `predict: expected a batch that ${cond.length} conditionings divide, received ${batch} latents.`;
      throw new LatentkitError("tensor.bad-shape", message);
    }
  }
}

const lengthened = (context: Tensor, tokens: number): Tensor =>
  joined(new Array<Tensor>(tokens / context.shape[1]!).fill(context), 1);

const commonMultiple = (a: number, b: number): number => (a / commonDivisor(a, b)) * b;

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b));
