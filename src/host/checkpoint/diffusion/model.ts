import { describe, LatentkitError } from "../../../base/errors.js";
import { scale } from "../../../tensor/ops.js";
import { cycled, joined, narrowed } from "../../../tensor/parts.js";
import type { ModelSampling } from "../../../tensor/sampling/model-sampling.js";
import { fourSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, Model, ModelPatch, SamplingRun, Vae } from "../../types.js";
import type { AdapterUse } from "../ip-adapter/use.js";
import type { LoraTarget } from "../lora/places.js";
import type { Adapter } from "../session/model-part.js";
import { latentError } from "../vae/model.js";
import { inArea, inpaintChannels, type LabelSource } from "./conditioning.js";
import { cleanOf, inputScale, type Reading } from "./sampling.js";

/** Inputs of a network by name. */
export type NamedTensors = Readonly<Record<string, Tensor>>;

/** Facts about a network by which parts of other files fit it. */
export interface NetworkSizes {
  /** Name for messages, such as "UNet of anime/model.safetensors". */
  readonly label: string;
  /** Channels of latents. */
  readonly outChannels: number;
  /** Width of its context; undefined if its file does not say. */
  readonly contextDim?: number;
  /** Whether a narrower context is filled with zeros. */
  readonly widensContext?: boolean;
  /** Width of a pooled text that it takes, if there is one. Absent: any. */
  readonly pooledWidth?: number;
  /** Places that references may have, the usual one first. Absent: it ignores references. */
  readonly places?: readonly string[];
}

/** The network of a model, from either format. */
export interface DiffusionNetwork extends NetworkSizes {
  readonly inChannels: number;
  /** Whether one call may evaluate these entries: contexts repeat then until all are equally long, as CLIP's may. */
  canShare(entries: Conditioning): boolean;
  /** Its layers as LoRA files name them. Absent: it is a finished ONNX model, whose weights stay. */
  readonly target?: LoraTarget;
  /** The network with one more LoRA; absent as `target`. */
  adapted?(adapter: Adapter): DiffusionNetwork;
  /** The network changed to take this many numbers per patch, as a Control LoRA needs. Absent: it cannot. */
  taking?(inputs: number): DiffusionNetwork;
  /** The network with a change that a node makes; undefined for one that it cannot make. */
  patched?(patch: ModelPatch): DiffusionNetwork | undefined;
  /** The network that sees the pictures of one more IPAdapter. Absent: it cannot. Throws value.invalid for one that does not fit. */
  shown?(use: AdapterUse): DiffusionNetwork;
  /** Inputs beside latent, timestep and context for one entry, those of SDXL's label. Fails with value.invalid. */
  labelInputs(entry: Conditioning[number], source: LabelSource): NamedTensors;
  /** Channels beside the latent, for the whole of it, if it takes some. Absent: those of Stable Diffusion's inpainting. */
  extraChannels?(entry: Conditioning[number], run: SamplingRun): Tensor;
  forRun(run: SamplingRun): NetworkRun;
}

/** A network in one run. */
export interface NetworkRun {
  /** The network's output [B, outChannels, h, w]. */
  predict(call: NetworkCall): Promise<Tensor>;
}

/** One call of a network. */
export interface NetworkCall {
  /** Scaled latent [B, inChannels, h, w], with the channels of inpainting. */
  readonly x: Tensor;
  /** Only the scaled latent, for control nets: x itself except for inpainting. */
  readonly noisy: Tensor;
  readonly timestep: number;
  /** [B, tokens, contextDim]. The same tensor at each step, as are the labels. */
  readonly context: Tensor;
  readonly labels: NamedTensors;
  /** First entry of the call; the others share its control. */
  readonly entry: Conditioning[number];
  /** All entries of the call, each with as many latents of x. */
  readonly entries: Conditioning;
  readonly sigma: number;
  readonly signal?: AbortSignal;
}

/** Everything that a model of a checkpoint is made of. */
export interface ModelSource {
  readonly network: DiffusionNetwork;
  /** Name of its family: "sdxl". */
  readonly family: string;
  readonly sampling: ModelSampling;
  readonly reading: Reading;
  /** Loads a tiny decoder of latents in the model's units, for previews. */
  readonly tinyDecoder?: () => Promise<Pick<Vae, "decode">>;
}

/** Calls of the network that a run of unknown length is planned for. */
const USUAL_CALLS = 20;
/** Sets of conditioning whose inputs stay composed in a run: a regional prompt with ranges has a few. */
const COMPOSED = 8;

// A model learns of its run first (`forRun`): inpainting needs the mask, SDXL the size.
/** The diffusion model of a checkpoint, which predicts in the runtime's process. */
export class CheckpointModel implements Model {
  readonly sampling: ModelSampling;
  readonly preview: Model["preview"];

  constructor(readonly source: ModelSource) {
    this.sampling = source.sampling;
    const { tinyDecoder } = source;
    if (tinyDecoder === undefined) return;
    this.preview = async (denoised) => {
      // the estimate's memory is the sampler's again once this has returned a promise
      const copy = denoised.clone();
      return (await tinyDecoder()).decode(copy);
    };
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
    const network = this.source.network.patched?.(patch);
    if (network !== undefined) return new CheckpointModel({ ...this.source, network });
    const isOfFlow = this.source.reading === "flow" && FLOW_NODES.includes(patch.node);
    const reading = isOfFlow ? "flow" : READINGS[patch.node]?.[String(patch.inputs.sampling)];
    if (reading === undefined) throw unsupported(patch);
    return new CheckpointModel({ ...this.source, reading });
  }
}

/** Nodes that set the noise levels of a flow, whose network stays read as it is. */
const FLOW_NODES: readonly string[] = ["ModelSamplingSD3", "ModelSamplingAuraFlow", "ModelSamplingFlux"];

/** Readings of the network that nodes ask for, by their names and those of their input `sampling`. */
const READINGS: Readonly<Record<string, Readonly<Record<string, Reading>>>> = {
  ModelSamplingDiscrete: { eps: "eps", v_prediction: "v", lcm: "lcm", x0: "x0" },
  ModelSamplingContinuousEDM: { v_prediction: "edm-v", edm: "edm", "edm_playground_v2.5": "edm", eps: "eps" },
  ModelSamplingContinuousV: { v_prediction: "edm-v" },
};

const unsupported = ({ node, inputs }: ModelPatch): LatentkitError => {
  const change = Object.hasOwn(READINGS, node) ? `read its models as ${describe(inputs.sampling)}` : `apply ${node}`;
  return new LatentkitError("host.missing", `host "checkpoint" cannot ${change}.`);
};

/** Inputs of the network that stay the same for a set of conditionings. */
interface Composed {
  readonly entries: Conditioning;
  readonly items: number;
  readonly context: Tensor;
  readonly labels: NamedTensors;
  readonly inpaint: Tensor | undefined;
}

/** The predictions of a model in one run. */
class ModelRun {
  readonly #source: ModelSource;
  readonly #run: SamplingRun;
  readonly #network: NetworkRun;
  readonly #composed: Composed[] = [];

  constructor(source: ModelSource, run: SamplingRun) {
    this.#source = source;
    this.#run = run;
    this.#network = source.network.forRun(run);
  }

  async predict(x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor> {
    this.#refuseMisfit(x, sigma, cond);
    // Prompts of different lengths get calls of their own: repeating or padding would change a language model's
    // context.
    if (this.#source.network.canShare(cond)) return this.#predict(x, sigma, cond, signal);
    const items = x.shape[0]! / cond.length;
    const estimates: Tensor[] = [];
    for (const [i, entry] of cond.entries())
      estimates.push(await this.#predict(narrowed(x, 0, i * items, items), sigma, [entry], signal));
    return joined(estimates, 0);
  }

  async #predict(x: Tensor, sigma: number, cond: Conditioning, signal?: AbortSignal): Promise<Tensor> {
    const { reading } = this.#source;
    const timestep = this.#run.sampling.timestep(sigma);
    const { context, labels, inpaint } = this.#compose(x, cond);
    const scaled = scale(x, inputScale(reading, sigma));
    const input = inpaint === undefined ? scaled : joined([scaled, inpaint], 1);
    const call = { x: input, noisy: scaled, timestep, context, labels, entry: cond[0]!, entries: cond, sigma, signal };
    const out = await this.#network.predict(call);
    return cleanOf(reading, { x, out, sigma, timestep });
  }

  /** The context, labels and extra channels of a call. Tensors are the same at every step, so that they are sent once. */
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
    const batched = (parts: readonly Tensor[]): Tensor =>
      joined(
        parts.map((part) => cycled(part, batch)),
        0,
      );
    const contexts = cond.map(([tensor]) => this.#contextOf(tensor));
    const tokens = contexts.map(({ shape }) => shape[1]!).reduce(commonMultiple, 1);
    const labels = cond.map((entry) => this.#labelInputs(entry));
    const names = Object.keys(labels[0]!);
    const composed: Composed = {
      entries: [...cond],
      items,
      context: batched(contexts.map((context) => lengthened(context, tokens))),
      labels: Object.fromEntries(names.map((name) => [name, batched(labels.map((label) => label[name]!))])),
      inpaint: this.#takesMask()
        ? batched(cond.map((entry) => this.#extraChannels(entry, rows!, columns!)))
        : undefined,
    };
    if (this.#composed.length === COMPOSED) this.#composed.shift();
    this.#composed.push(composed);
    return composed;
  }

  #takesMask(): boolean {
    const { inChannels, outChannels } = this.#source.network;
    return inChannels > outChannels;
  }

  #extraChannels(entry: Conditioning[number], rows: number, columns: number): Tensor {
    const { network } = this.#source;
    const channels = network.extraChannels?.(entry, this.#run) ?? inpaintChannels(entry, this.#run);
    const isWhole = channels.shape[2] === rows && channels.shape[3] === columns;
    return isWhole ? channels : inArea(channels, entry, this.#run);
  }

  #labelInputs(entry: Conditioning[number]): NamedTensors {
    const [, , rows, columns] = this.#run.latent.shape as [number, number, number, number];
    const { family, network } = this.#source;
    return network.labelInputs(entry, {
      kind: family === "sdxl-refiner" ? "sdxl-refiner" : "sdxl",
      cells: [rows, columns],
      isNegative: this.#run.negative.includes(entry),
      seed: this.#run.seed,
    });
  }

  /** A context as the network takes it. Fails with value.invalid for that of another family's text encoder. */
  #contextOf(tensor: Tensor): Tensor {
    const { network } = this.#source;
    const [count, tokens, width = 0] = tensor.shape;
    const isWhole = tensor.shape.length === 3 && count! > 0 && tokens! > 0;
    if (!isWhole || !takesContext(network, width)) throw contextError(network, describe(tensor));
    const missing = (network.contextDim ?? width) - width;
    return missing === 0 ? tensor : joined([tensor, Tensor.zeros([count!, tokens!, missing])], 2);
  }

  #refuseMisfit(x: Tensor, sigma: number, cond: Conditioning): void {
    const [batch, channels, rows, columns] = fourSides("predict", x);
    const { outChannels, label } = this.#source.network;
    if (channels !== outChannels || rows === 0 || columns === 0) throw latentError(label, outChannels, describe(x));
    if (!Number.isFinite(sigma) || sigma < 0)
      throw new LatentkitError(
        "value.out-of-range",
        `predict: expected a sigma of at least 0, received ${describe(sigma)}.`,
      );
    if (cond.length === 0 || batch % cond.length !== 0) {
      const message = `predict: expected a multiple of ${cond.length} latents, as many for each conditioning, received ${batch}.`;
      throw new LatentkitError("tensor.bad-shape", message);
    }
  }
}

/** Whether a network takes contexts of a width. */
export const takesContext = ({ contextDim, widensContext }: NetworkSizes, width: number): boolean =>
  contextDim === undefined || width === contextDim || (widensContext === true && width < contextDim);

/** Error of a context that a network does not take. */
export function contextError({ label, contextDim }: NetworkSizes, received: string): LatentkitError {
  const expected = `[n, tokens, ${contextDim ?? "width"}], as its own text encoder makes it`;
  return new LatentkitError("value.invalid", `${label}: expected a conditioning ${expected}, received ${received}.`);
}

/** Whether all contexts have as many tokens. */
export const haveOneLength = ([first, ...others]: Conditioning): boolean =>
  others.every(([{ shape }]) => shape[1] === first![0].shape[1]);

const lengthened = (context: Tensor, tokens: number): Tensor =>
  joined(new Array<Tensor>(tokens / context.shape[1]!).fill(context), 1);

const commonMultiple = (a: number, b: number): number => (a / commonDivisor(a, b)) * b;

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b));
