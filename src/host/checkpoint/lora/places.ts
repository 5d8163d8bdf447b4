import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { WeightMap } from "../weights/stored.js";

/** Where a weight is that a LoRA file names. */
export interface Place {
  readonly key: string;
  /** The rows of the layer, if it is not the whole weight or has them in another order. */
  readonly rows?: Rows;
  /** True if the network multiplies from the other side than the LoRA expects. */
  readonly transposed?: true;
}

/** Places of the two weights of a layer. */
export interface ModulePlaces {
  weight?: Place;
  bias?: Place;
}

/** Names of a network's layers in the styles of LoRA files, with their places. */
export type NamedPlaces = readonly [names: readonly string[], places: ModulePlaces][];

/** A network that LoRA files change. */
export interface LoraTarget {
  readonly weights: WeightMap;
  /** Its layers by every name that LoRA files have for them. */
  readonly places: (weights: WeightMap) => NamedPlaces;
  /** Key of the layer that takes the network's inputs, of which models that repaint have more. */
  readonly inputs?: string;
  /** Whether a changed weight is rounded to the type of the file. */
  readonly isRounded?: boolean;
}

/** Places of a network's layers by every name that a LoRA file may have for them. */
export function placesByName({ places, weights }: LoraTarget): ReadonlyMap<string, ModulePlaces> {
  return new Map(places(weights).flatMap(([names, at]) => names.map((name) => [name, at] as const)));
}

export const underscored = (name: string): string => name.replaceAll(".", "_");

/** Layers by their own names. */
export function ownPlaces(weights: WeightMap): Map<string, ModulePlaces> {
  const modules = new Map<string, ModulePlaces>();
  for (const key of weights.keys()) {
    const dot = key.lastIndexOf(".");
    const kind = KINDS.get(key.slice(dot + 1));
    if (dot > 0 && kind !== undefined) addPlace(modules, key.slice(0, dot), kind, { key });
  }
  return modules;
}

/** Endings of weights; Flux calls those of its norms `scale`. */
const KINDS: ReadonlyMap<string, "weight" | "bias"> = new Map([
  ["weight", "weight"],
  ["bias", "bias"],
  ["scale", "weight"],
]);

export function addPlace(
  modules: Map<string, ModulePlaces>,
  name: string,
  kind: "weight" | "bias",
  place: Place,
): void {
  const module = modules.get(name) ?? {};
  module[kind] = place;
  modules.set(name, module);
}

/** The same rows of a layer's weight and of its bias. */
export const rowsOf = ({ weight, bias }: ModulePlaces, rows: Rows): ModulePlaces => ({
  weight: weight && { ...weight, rows },
  bias: bias && { ...bias, rows },
});

/**
 * Names of a transformer's layer. The styles, in this order: plain, ComfyUI and ai-toolkit, diffusers, PEFT, kohya,
 * OneTrainer, LyCORIS.
 */
export const transformerNames = (module: string): readonly string[] => [
  ...["", "diffusion_model.", "model.diffusion_model.", "transformer.", "base_model.model."].map((at) => at + module),
  ...["lora_unet_", "lora_transformer_", "lycoris_"].map((at) => at + underscored(module)),
];

/** Rows of a weight that a layer is, as ranges in the layer's order. */
export type Rows = readonly (readonly [start: number, end: number])[];

/** Rows of one of three layers that are one weight of so many rows. */
export const thirdOf = (rows: number, index: 0 | 1 | 2): Rows => [[(index * rows) / 3, ((index + 1) * rows) / 3]];

/** Place of one of three layers that are one weight. */
export const thirdPlace = (weights: WeightMap, key: string, third: number): Place => ({
  key,
  rows: thirdOf(weights.get(key)!.shape[0]!, third as 0 | 1 | 2),
});

/** Number of all rows. */
export const lengthOf = (rows: Rows): number => rows.reduce((sum, [start, end]) => sum + end - start, 0);

/** Change of some rows. */
export interface RowsChange {
  readonly rows: Rows;
  change(part: Value): Value;
}

/** A value of `length` rows on an axis, some of them changed, in order. It is taken apart once. */
export function withChangedRows(
  graph: OnnxGraph,
  whole: Value,
  { axis, length }: { axis: number; length: number },
  changes: readonly RowsChange[],
): Value {
  const starts = [...new Set([0, ...changes.flatMap(({ rows }) => rows.flat())])]
    .filter((start) => start < length)
    .sort((a, b) => a - b);
  const sizes = starts.map((start, i) => (starts[i + 1] ?? length) - start);
  const parts = [...split(graph, whole, axis, sizes)];
  for (const { rows, change } of changes) {
    const indexes = rows.flatMap(([start, end]) =>
      starts.flatMap((from, index) => (from >= start && from < end ? [index] : [])),
    );
    const changed = change(
      join(
        graph,
        indexes.map((index) => parts[index]!),
        axis,
      ),
    );
    const own = split(
      graph,
      changed,
      axis,
      indexes.map((index) => sizes[index]!),
    );
    for (const [i, index] of indexes.entries()) parts[index] = own[i]!;
  }
  return join(graph, parts, axis);
}

function split(graph: OnnxGraph, value: Value, axis: number, sizes: readonly number[]): readonly Value[] {
  if (sizes.length === 1) return [value];
  return graph.nodeWithOutputs("Split", [value, graph.ints(sizes)], sizes.length, { axis: { int: axis } });
}

const join = (graph: OnnxGraph, values: readonly Value[], axis: number): Value =>
  values.length === 1 ? values[0]! : graph.node("Concat", values, { axis: { int: axis } });
