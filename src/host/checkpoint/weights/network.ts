import { describe, LatentkitError } from "../../../base/errors.js";
import { OnnxGraph, type Value } from "../onnx/graph.js";
import { CPU_TARGET } from "../onnx/target.js";
import type { StoredWeight, WeightMap } from "./stored.js";

/** Gives a builder the weights of one part as float32 values of a graph. */
export interface Network {
  readonly graph: OnnxGraph;
  /** True if the part has that key. Builders follow their config; this is for what a config cannot tell. */
  has(key: string): boolean;
  /** Sides of a weight. Throws model.invalid where it is absent. */
  shape(key: string): readonly number[];
  /** A whole weight, the same value at every call. Throws model.invalid for absent ones and other shapes. */
  weight(key: string, shape: readonly number[]): Value;
  /** Rows of a table `[rows, width]` under int64 ids `[…]`: `[…, width]`. Throws as weight. */
  rows(key: string, shape: readonly number[], ids: Value): Value;
}

/** A change of one weight, as a LoRA makes it: takes and returns a float32 value of that shape. */
export type WeightChange = (graph: OnnxGraph, weight: Value, shape: readonly number[]) => Value;

/** Changes of weights by key, applied in order. */
export type WeightChanges = ReadonlyMap<string, readonly WeightChange[]>;

/** TensorProto.DataType.FLOAT. */
const FLOAT = { int: 1 };
/** Key of a layer's factor beside its 8-bit weight. */
const SCALE = "scale_weight";

/** A network that reads the weights of one part from their file. */
export function networkOf(graph: OnnxGraph, weights: WeightMap, changes: WeightChanges = new Map()): Network {
  const values = new Map<string, Value>();
  const stored = (key: string): StoredWeight => {
    const weight = weights.get(key);
    if (weight === undefined) throw new LatentkitError("model.invalid", `Weight ${describe(key)} is missing.`);
    return weight;
  };
  const checked = (key: string, shape: readonly number[]): StoredWeight => {
    const weight = stored(key);
    if (weight.shape.length === shape.length && shape.every((side, axis) => weight.shape[axis] === side)) return weight;
    const [expected, received] = [shape, weight.shape].map((sides) => `[${sides.join(", ")}]`);
    const message = `Weight ${describe(key)}: expected shape ${expected}, received ${received}.`;
    throw new LatentkitError("model.invalid", message, { expected, received });
  };
  const cast = (key: string, value: Value, { dtype }: StoredWeight): Value => {
    const floats = dtype === "F32" ? value : graph.node("Cast", [value], { to: FLOAT });
    const scaleKey = scaleKeyOf(key);
    const scale = scaleKey === undefined ? undefined : weights.get(scaleKey);
    if (scaleKey === undefined || scale === undefined) return floats;
    return graph.node("Mul", [floats, cast(scaleKey, graph.stored(scale), checked(scaleKey, scalarShape(scale)))]);
  };
  const weight = (key: string, shape: readonly number[]): Value => {
    const entry = checked(key, shape);
    const known = values.get(key);
    if (known !== undefined) return known;
    let value = cast(key, graph.stored(entry), entry);
    for (const change of changes.get(key) ?? []) value = change(graph, value, shape);
    values.set(key, value);
    return value;
  };
  return {
    graph,
    has: (key) => weights.has(key),
    shape: (key) => stored(key).shape,
    weight,
    rows(key, shape, ids) {
      const entry = checked(key, shape);
      // a changed table has to be whole; of others only the rows that are read are converted
      if (changes.has(key)) return graph.node("Gather", [weight(key, shape), ids]);
      return cast(key, graph.node("Gather", [graph.stored(entry), ids]), entry);
    },
  };
}

const scaleKeyOf = (key: string): string | undefined =>
  key.endsWith(".weight") ? `${key.slice(0, -"weight".length)}${SCALE}` : undefined;

/** The two shapes of a factor. */
const scalarShape = ({ shape }: StoredWeight): readonly number[] => (shape.length === 0 ? [] : [1]);

/** A network without a file, whose weights are inputs of the graph: `listed` has the shape of each by its key. */
export function listedNetwork(
  target = CPU_TARGET,
): Network & { readonly listed: ReadonlyMap<string, readonly number[]> } {
  const graph = new OnnxGraph("listed", target);
  const listed = new Map<string, readonly number[]>();
  const weight = (key: string, shape: readonly number[]): Value => {
    if (listed.has(key)) return key as Value;
    listed.set(key, shape);
    return graph.input(key, "float", shape);
  };
  return {
    graph,
    listed,
    has: () => false,
    shape(key) {
      const shape = listed.get(key);
      if (shape === undefined) throw new LatentkitError("model.invalid", `Weight ${describe(key)} is missing.`);
      return shape;
    },
    weight,
    rows: (key, shape, ids) => graph.node("Gather", [weight(key, shape), ids]),
  };
}
