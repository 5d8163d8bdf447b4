import type { StoredType } from "../../io/safetensors/header.js";
import { OnnxGraph } from "./onnx/graph.js";
import type { SessionSource } from "./runtime/sessions.js";
import { HalfWeights } from "./weights/half-weights.js";
import { type Network, networkOf, type WeightChange, type WeightChanges } from "./weights/network.js";
import { codeBytes, PackedWeights } from "./weights/packed/packed-weights.js";
import { isPacked } from "./weights/packed/types.js";
import { type FileState, fileState, type StoredWeight, type WeightFile, type WeightMap } from "./weights/stored.js";

/** Changes of weights by one LoRA at one strength. */
export interface Adapter {
  /** Names the file, its state and the strength. */
  readonly key: string;
  readonly file: WeightFile;
  readonly changes: WeightChanges;
}

/** Names a file in the state in which it was opened. */
export const stateOf = ({ path, bytes, modifiedNs, inode }: FileState): string =>
  `${path} ${bytes} ${modifiedNs} ${inode}`;

/** Weights that a plan reads from the file or the device in every run. */
const OVERRIDABLE = { stream: true, keep: "F16", fold: false } as const;

/** Types whose values a GPU can hold in 16 bits. */
const HALF_TYPES: readonly StoredType[] = ["F16", "BF16", "F8_E4M3", "F8_E5M2"];

/** One network of a model file, with the LoRAs that change it. */
export class ModelPart<Config> {
  readonly #sessions = new Map<string, SessionSource>();

  constructor(
    /** Name for messages, such as "UNet of anime/model.safetensors". */
    readonly label: string,
    readonly file: WeightFile,
    readonly config: Config,
    readonly weights: WeightMap,
    readonly adapters: readonly Adapter[] = [],
    private readonly halves = new HalfWeights(weights),
  ) {}

  /** The part with one more LoRA. */
  adapted(adapter: Adapter): ModelPart<Config> {
    return new ModelPart(this.label, this.file, this.config, this.weights, [...this.adapters, adapter], this.halves);
  }

  /** A session of the network; `variant` names what `build` makes of it, and has the same object each time. */
  session(variant: string, build: (network: Network, config: Config) => void): SessionSource {
    const source = this.#sessions.get(variant) ?? this.#source(variant, build);
    this.#sessions.set(variant, source);
    return source;
  }

  #source(variant: string, build: (network: Network, config: Config) => void): SessionSource {
    const files = [this.file, ...this.adapters.map((adapter) => adapter.file)];
    const stored = [...this.weights.values()];
    // embeddings and what LoRAs change by more than a sum are expanded: few beside these
    const matrices = stored.filter(({ dtype, shape }) => shape.length === 2 && isPacked(dtype));
    const parametersOf = (weights: readonly StoredWeight[]) =>
      weights.reduce((sum, { shape }) => sum + shape.reduce((product, side) => product * side, 1), 0);
    return {
      key: JSON.stringify([variant, stateOf(this.file), ...this.adapters.map(({ key }) => key)]),
      label: this.label,
      files: files.map(({ path }) => path),
      states: files.map(fileState),
      parameters: parametersOf(stored),
      halfParameters: parametersOf(stored.filter(({ dtype }) => (HALF_TYPES as readonly string[]).includes(dtype))),
      packedParameters: parametersOf(matrices),
      packedBytes: matrices.reduce((sum, weight) => sum + codeBytes(weight), 0),
      fileBytes: stored.reduce((sum, { from, to }) => sum + to - from, 0),
      make: async (plan, target) => {
        const graph = new OnnxGraph(variant, target);
        const halves = plan === "keep" ? await this.halves.find() : undefined;
        const packed = new PackedWeights(this.file.path);
        build(networkOf(graph, this.weights, merged(this.adapters), halves, packed), this.config);
        // each half of the work takes some milliseconds: the event loop turns in between
        await new Promise((resolve) => setImmediate(resolve));
        return { ...graph.encode({ overridable: OVERRIDABLE[plan] }), unpack: packed.plan };
      },
    };
  }
}

/** Changes of all LoRAs, in order. */
function merged(adapters: readonly Adapter[]): WeightChanges {
  const all = new Map<string, WeightChange[]>();
  for (const { changes } of adapters)
    for (const [key, list] of changes) all.set(key, [...(all.get(key) ?? []), ...list]);
  return all;
}
