import { describe, LatentkitError } from "../../../base/errors.js";
import { OnnxGraph, type Value } from "../onnx/graph.js";
import { CPU_TARGET } from "../onnx/target.js";
import { type PackedWeights, packedProduct } from "./packed/packed-weights.js";
import { isPacked, type StoredWeight, type WeightMap } from "./stored.js";

/** Gives a builder the weights of one part as float32 values of a graph. */
export interface Network {
  readonly graph: OnnxGraph;
  /**
   * A whole weight, the same value at every call. One that each run converts waits until `x` exists. Throws model.invalid
   * for absent ones and other shapes.
   */
  weight(key: string, shape: readonly number[], x?: Value): Value;
  /**
   * A whole weight that each run converts, once `x` is there, though others are converted in loading; one of 8 bits is not,
   * since its conversion takes longer than a run. Throws as weight.
   */
  lateWeight(key: string, shape: readonly number[], x: Value): Value;
  /**
   * x · Wᵀ for x […, inputs] and a weight [outputs, inputs] that stays in blocks, with its changes; undefined for a weight
   * that has to be expanded, as `weight` does. Throws as weight.
   */
  quantisedProduct(key: string, shape: readonly [outputs: number, inputs: number], x: Value): Value | undefined;
  /** Rows of a table `[rows, width]` under int64 ids `[…]`: `[…, width]`. Throws as weight. */
  rows(key: string, shape: readonly number[], ids: Value): Value;
}

/** A change of one weight, as a LoRA makes it. */
export interface WeightChange {
  /** Takes and returns a float32 value of that shape. */
  (graph: OnnxGraph, weight: Value, shape: readonly number[]): Value;
  /** The same change of a product x · Wᵀ, for those that can do without the weight. */
  readonly ofProduct?: (graph: OnnxGraph, product: Value, x: Value) => Value;
}

/** Changes of weights by key, applied in order. */
export type WeightChanges = ReadonlyMap<string, readonly WeightChange[]>;

/** TensorProto.DataType.FLOAT and FLOAT16. */
const FLOAT = { int: 1 };
const FLOAT16 = { int: 10 };

interface FloatsOptions {
  /** int64 ids of the rows that are wanted; all if absent. */
  readonly ids?: Value;
  /** Whether it is held as F16: converted to that when it is loaded, and to float32 in every run. */
  readonly isHalved?: boolean;
}

/** A weight of single values as float32, times its factor: the whole of it, or some rows. Throws model.invalid for other types. */
export function floatsOf(graph: OnnxGraph, weight: StoredWeight, options: FloatsOptions = {}): Value {
  const { storedColumns, ...own } = weight;
  if (storedColumns === undefined) return storedFloats(graph, weight, options);
  const [rows, columns] = weight.shape as [number, number];
  const floats = storedFloats(graph, { ...own, shape: [rows, storedColumns] }, options);
  return graph.node("Pad", [floats, graph.ints([0, 0, 0, columns - storedColumns])]);
}

function storedFloats(graph: OnnxGraph, weight: StoredWeight, { ids, isHalved = false }: FloatsOptions): Value {
  const rowsOf = (value: Value): Value => (ids === undefined ? value : graph.node("Gather", [value, ids]));
  const cast = (value: Value): Value => (weight.dtype === "F32" ? value : graph.node("Cast", [value], { to: FLOAT }));
  const halved = (value: Value): Value => {
    const half = graph.node("Cast", [value], { to: FLOAT16 });
    // rows are chosen in every run anyway
    return ids === undefined ? graph.unfolded(half) : half;
  };
  const own = graph.stored(weight, { isSmall: weight.shape.length < 2 });
  const stored = isHalved ? halved(own) : own;
  const type = isHalved ? "F16" : weight.dtype;
  // only the rows that are read are converted, if Gather takes the type: it never takes 8 bits
  const takesRows = graph.target.halfTypes.some((half) => half === type) || ["F32", "F64"].includes(type);
  const floats = takesRows ? cast(rowsOf(stored)) : rowsOf(cast(stored));
  const { factor, shape } = weight;
  if (factor === undefined) return floats;
  const numbers = floatsOf(graph, factor);
  const isOne = factor.shape.every((side) => side === 1);
  const sides = graph.ints(isOne ? [1] : [shape[0]!, ...shape.slice(1).map(() => 1)]);
  const factors = graph.node("Reshape", [numbers, sides]);
  return graph.node("Mul", [floats, isOne ? factors : rowsOf(factors)]);
}

/** Whether a weight has no factor, or one number, or one for each of its rows: [], [1], [rows], [rows, 1] … */
export function hasFittingFactor({ factor, shape }: StoredWeight): boolean {
  if (factor === undefined) return true;
  const [first = 1, ...others] = factor.shape;
  return (first === 1 || first === shape[0]) && others.every((side) => side === 1);
}

interface NetworkOptions {
  readonly changes?: WeightChanges;
  /** Weights that are held as F16 though stored in another type. */
  readonly halves?: ReadonlySet<StoredWeight>;
  /** Takes the weights in blocks. */
  readonly packed?: PackedWeights;
}

/** A network that reads the weights of one part from their file. */
export function networkOf(
  graph: OnnxGraph,
  weights: WeightMap,
  { changes = new Map(), halves = new Set(), packed }: NetworkOptions = {},
): Network {
  const values = new Map<string, Value>();
  const checked = (key: string, shape: readonly number[]): StoredWeight => {
    const weight = weights.get(key);
    if (weight === undefined) throw new LatentkitError("model.invalid", `Weight ${describe(key)} is missing.`);
    if (weight.shape.length === shape.length && shape.every((side, axis) => weight.shape[axis] === side)) return weight;
    const [expected, received] = [shape, weight.shape].map((sides) => `[${sides.join(", ")}]`);
    const message = `Weight ${describe(key)}: expected shape ${expected}, received ${received}.`;
    throw new LatentkitError("model.invalid", message, { expected, received });
  };
  const floats = (entry: StoredWeight, options: FloatsOptions): Value => {
    if (entry.parts !== undefined) {
      const parts = entry.parts.map((part) => floats(part, options));
      return graph.node("Concat", parts, { axis: { int: 0 } });
    }
    const { storedColumns, shape } = entry;
    const inFile = storedColumns === undefined ? entry : { ...entry, shape: [shape[0]!, storedColumns] };
    const single = packed && isPacked(entry.dtype) ? { ...entry, ...packed.floats(inFile), shape } : entry;
    return floatsOf(graph, single, { ...options, isHalved: halves.has(entry) });
  };
  const changed = (key: string, shape: readonly number[], after: Value | undefined): Value => {
    const entry = checked(key, shape);
    const known = values.get(key);
    if (known !== undefined) return known;
    const value = graph.waiting(after, () =>
      (changes.get(key) ?? []).reduce((weight, change) => change(graph, weight, shape), floats(entry, {})),
    );
    values.set(key, value);
    return value;
  };
  const weight = (key: string, shape: readonly number[], x?: Value): Value =>
    changed(key, shape, graph.isStreamed ? x : undefined);
  return {
    graph,
    weight,
    lateWeight: (key, shape, x) => (checked(key, shape).dtype.startsWith("F8") ? weight : changed)(key, shape, x),
    quantisedProduct(key, shape, x) {
      const entry = checked(key, shape);
      const own = changes.get(key) ?? [];
      if (
        packed === undefined ||
        entry.storedColumns !== undefined ||
        !own.every(({ ofProduct }) => ofProduct !== undefined)
      )
        return undefined;
      const product = productOf(graph, packed, entry, x);
      if (product === undefined) return undefined;
      return graph.waiting(graph.isStreamed ? x : undefined, () =>
        own.reduce((sum, { ofProduct }) => ofProduct!(graph, sum, x), product),
      );
    },
    rows(key, shape, ids) {
      const entry = checked(key, shape);
      // a changed table has to be whole; of others only the rows that are read are converted
      if (changes.has(key)) return graph.node("Gather", [weight(key, shape), ids]);
      return floats(entry, { ids });
    },
  };
}

/** x · Wᵀ for a weight that stays packed, as all of its parts have to. */
function productOf(graph: OnnxGraph, packed: PackedWeights, weight: StoredWeight, x: Value): Value | undefined {
  if (weight.parts === undefined) return packedProduct(graph, packed, weight, x);
  const products: Value[] = [];
  for (const part of weight.parts) {
    const product = packedProduct(graph, packed, part, x);
    if (product === undefined) return undefined;
    products.push(product);
  }
  return graph.node("Concat", products, { axis: { int: -1 } });
}

/** A network without a file, whose weights are inputs of the graph. */
export interface ListedNetwork extends Network {
  /** Shape of each weight by its key. */
  readonly listed: ReadonlyMap<string, readonly number[]>;
}

/** A network without a file. Its weights are F16 if the target takes these, else float32. */
export function listedNetwork(target = CPU_TARGET): ListedNetwork {
  const graph = new OnnxGraph("listed", target);
  const listed = new Map<string, readonly number[]>();
  const isHalf = target.halfTypes.includes("F16");
  const stored = (key: string, shape: readonly number[]): Value => {
    if (listed.has(key)) return key as Value;
    listed.set(key, shape);
    return graph.input(key, isHalf ? "float16" : "float", shape);
  };
  const floats = (value: Value): Value => (isHalf ? graph.node("Cast", [value], { to: FLOAT }) : value);
  return {
    graph,
    listed,
    weight: (key, shape) => floats(stored(key, shape)),
    lateWeight: (key, shape) => floats(stored(key, shape)),
    quantisedProduct: () => undefined,
    rows: (key, shape, ids) => floats(graph.node("Gather", [stored(key, shape), ids])),
  };
}
