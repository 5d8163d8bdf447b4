import type { StoredType } from "../../../io/safetensors.js";
import { OnnxGraph } from "../onnx/graph.js";
import type { Part } from "../recognition/part.js";
import { type Network, networkOf, type WeightChange, type WeightChanges } from "../weights/network.js";
import { codeBytes, PackedWeights, staysPacked } from "../weights/packed/packed-weights.js";
import {
  type FileState,
  fileState,
  placedWeights,
  type StoredWeight,
  valuesIn,
  type WeightFile,
  type WeightMap,
} from "../weights/stored.js";
import { HalfWeights } from "../weights/values.js";
import type { Plan } from "./options.js";
import type { SessionSource } from "./sessions.js";

/** Changes of weights by one LoRA at one strength. */
export interface Adapter {
  /** Names the file, its state and the strength. */
  readonly key: string;
  readonly file: WeightFile;
  readonly changes: WeightChanges;
}

/** Names a file in the state in which it was opened. */
export const fileStateKey = ({ path, bytes, modifiedNs, inode }: FileState): string =>
  `${path} ${bytes} ${modifiedNs} ${inode}`;

/** Weights that a plan reads from the file or the device in every run. */
const OVERRIDABLE = { stream: true, keep: "F16", fold: false } as const;

/** Types whose values a GPU can hold in 16 bits. */
const HALF_TYPES: readonly StoredType[] = ["F16", "BF16", "F8_E4M3", "F8_E5M2"];

interface SessionOptions {
  /** Further networks of the same graph. */
  readonly beside?: readonly ModelPart<unknown>[];
  /** Bytes that a run takes beside the weights, for each value of an input. */
  readonly work?: SessionSource["work"];
}

/** Rows of the smallest vocabulary, T5's; no other weight has as many. */
const LEAST_WORDS = 32_000;
/**
 * Measured with all families, from 256 x 256 to 1024 x 1024. The next ones mostly take the place of the largest; activations
 * do so too, which is why estimates of runs are less than a small picture adds up to.
 */
const NEXT_ONES = 0.25;
const ROW_TYPES: readonly string[] = ["F32", "F16", "BF16"];

/** One network of a model file, with the LoRAs that change it. */
export class ModelPart<Config> {
  readonly #sessions = new Map<string, SessionSource>();
  readonly #halves: HalfWeights;

  constructor(
    /** Name for messages, such as "UNet of anime/model.safetensors". */
    readonly label: string,
    readonly file: WeightFile,
    readonly config: Config,
    readonly weights: WeightMap,
    readonly adapters: readonly Adapter[] = [],
    halves = new HalfWeights(weights),
  ) {
    this.#halves = halves;
  }

  /** A part of a file as it was recognised; `what` it is precedes the file's name. */
  static of<Config>(what: string, file: WeightFile, { config, weights }: Part<Config>): ModelPart<Config> {
    return new ModelPart(`${what} of ${file.name}`, file, config, weights);
  }

  /** The part with one more LoRA. */
  adapted(adapter: Adapter): ModelPart<Config> {
    return new ModelPart(this.label, this.file, this.config, this.weights, [...this.adapters, adapter], this.#halves);
  }

  /** The part with other sizes, and weights made from this one's. */
  with(config: Config, weights: WeightMap): ModelPart<Config> {
    return new ModelPart(this.label, this.file, config, weights, this.adapters);
  }

  /** A session of the network; `variant` names the result of `build`. The same variant returns the same object. */
  session(variant: string, build: Build<Config>, { beside = [], work }: SessionOptions = {}): SessionSource {
    const key = JSON.stringify([variant, ...[this, ...beside].map((part) => part.#state)]);
    const source = this.#sessions.get(key) ?? { ...this.#source(key, variant, build, beside), work };
    this.#sessions.set(key, source);
    return source;
  }

  /** Names the file and the LoRAs. */
  get #state(): readonly string[] {
    return [fileStateKey(this.file), ...this.adapters.map(({ key }) => key)];
  }

  #source(key: string, variant: string, build: Build<Config>, beside: readonly ModelPart<unknown>[]): SessionSource {
    const parts = [this, ...beside];
    const files = parts.flatMap(({ file, adapters }) => [file, ...adapters.map((adapter) => adapter.file)]);
    const stored = parts.flatMap(({ weights }) => placedWeights(weights));
    // embeddings, and weights that LoRAs change by more than a sum, are expanded: few beside these
    const matrices = stored.filter(staysPacked);
    const parametersOf = (weights: readonly StoredWeight[]) =>
      weights.reduce((sum, { shape }) => sum + valuesIn(shape), 0);
    return {
      key,
      label: this.label,
      files: files.map(({ path }) => path),
      states: files.map(fileState),
      parameters: parametersOf(stored),
      convertedParameters: convertedOf(stored.filter(isConverted).map((weight) => parametersOf([weight]))),
      halfParameters: parametersOf(stored.filter(({ dtype }) => HALF_TYPES.some((type) => type === dtype))),
      packedParameters: parametersOf(matrices),
      packedBytes: matrices.reduce((sum, weight) => sum + codeBytes(weight), 0),
      fileBytes: stored.reduce((sum, { from, to }) => sum + to - from, 0),
      make: async (plan, target) => {
        const graph = new OnnxGraph(variant, target, plan === "stream");
        const networks: Network[] = [];
        const packed = new PackedWeights(this.file.path);
        for (const part of parts) networks.push(await part.#network(graph, plan, packed));
        build(networks[0]!, this.config, networks.slice(1));
        // each half of the work takes some milliseconds: the event loop turns in between
        await new Promise((resolve) => setImmediate(resolve));
        return { ...graph.encode({ overridable: OVERRIDABLE[plan] }), unpack: packed.plan };
      },
    };
  }

  async #network(graph: OnnxGraph, plan: Plan, packed: PackedWeights): Promise<Network> {
    const halves = plan === "keep" ? await this.#halves.find() : undefined;
    return networkOf(graph, this.weights, {
      changes: merged(this.adapters),
      halves,
      packed,
    });
  }
}

/** Writes a network, with the weights of `others` beside it. */
type Build<Config> = (network: Network, config: Config, others: readonly Network[]) => void;

/** Parameters that are converted at once: the largest weight, and the part of the next ones that the arena holds beside it. */
function convertedOf(sizes: readonly number[]): number {
  const [largest = 0, next = 0] = [...sizes].sort((a, b) => b - a);
  return largest + NEXT_ONES * next;
}

/** Whether a streamed run has the whole of a weight as float32; of a vocabulary in these types it has rows. */
const isConverted = (weight: StoredWeight): boolean =>
  !staysPacked(weight) && ((weight.shape[0] ?? 1) < LEAST_WORDS || !ROW_TYPES.includes(weight.dtype));

/** Changes of all LoRAs, in order. */
function merged(adapters: readonly Adapter[]): WeightChanges {
  const all = new Map<string, WeightChange[]>();
  for (const { changes } of adapters)
    for (const [key, list] of changes) all.set(key, [...(all.get(key) ?? []), ...list]);
  return all;
}
