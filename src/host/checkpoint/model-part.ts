import { LatentkitError } from "../../base/errors.js";
import { OnnxGraph } from "./onnx/graph.js";
import type { SessionSource } from "./runtime/sessions.js";
import { type Network, networkOf, type WeightChange, type WeightChanges } from "./weights/network.js";
import { hasChanged, type WeightFile, type WeightMap } from "./weights/stored.js";

/** Changes of weights by one LoRA at one strength. */
export interface Adapter {
  /** Names the file, its state and the strength. */
  readonly key: string;
  readonly file: WeightFile;
  readonly changes: WeightChanges;
}

/** One network of a model file, with the LoRAs that change it. */
export interface ModelPart<Config> {
  /** Name for messages, such as "UNet of anime/model.safetensors". */
  readonly label: string;
  readonly file: WeightFile;
  readonly config: Config;
  readonly weights: WeightMap;
  readonly adapters: readonly Adapter[];
}

/** Names a file in the state in which it was opened. */
export const stateOf = ({ path, bytes, modifiedNs, inode }: WeightFile): string =>
  `${path} ${bytes} ${modifiedNs} ${inode}`;

const sessions = new WeakMap<object, Map<string, SessionSource>>();

/** The session of a part; `variant` names what `build` makes of it. The same object for the same part and variant. */
export function sessionOf(part: ModelPart<unknown>, variant: string, build: (network: Network) => void): SessionSource {
  const own = sessions.get(part) ?? new Map<string, SessionSource>();
  sessions.set(part, own);
  const source = own.get(variant) ?? sourceOf(part, variant, build);
  own.set(variant, source);
  return source;
}

function sourceOf(part: ModelPart<unknown>, variant: string, build: (network: Network) => void): SessionSource {
  const { label, file, weights, adapters } = part;
  const files = [file, ...adapters.map((adapter) => adapter.file)];
  const stored = [...weights.values()];
  return {
    key: JSON.stringify([variant, stateOf(file), ...adapters.map(({ key }) => key)]),
    label,
    parameters: stored.reduce((sum, { shape }) => sum + shape.reduce((product, side) => product * side, 1), 0),
    fileBytes: stored.reduce((sum, { from, to }) => sum + to - from, 0),
    make: (plan) => {
      const graph = new OnnxGraph(variant);
      build(networkOf(graph, weights, merged(adapters)));
      return graph.encode({ overridable: plan === "stream" });
    },
    verify: async () => {
      for (const each of files) if (await hasChanged(each)) throw changed(each);
    },
  };
}

/** Changes of all LoRAs, in order. */
function merged(adapters: readonly Adapter[]): WeightChanges {
  const all = new Map<string, WeightChange[]>();
  for (const { changes } of adapters)
    for (const [key, list] of changes) all.set(key, [...(all.get(key) ?? []), ...list]);
  return all;
}

const changed = ({ path }: WeightFile): LatentkitError =>
  new LatentkitError("model.invalid", `${path} has changed since it was loaded: run this again.`);
