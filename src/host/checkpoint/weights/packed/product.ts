import type { OnnxGraph, Value } from "../../onnx/graph.js";
import { matMulTransposed } from "../../onnx/products.js";
import { isPacked } from "../packed-types.js";
import type { Packing, StoredWeight } from "../stored.js";
import type { MadeTensor, PackedWeights } from "./packed-weights.js";

/** Operators that only ONNX Runtime has. */
const MICROSOFT = { domain: "com.microsoft" } as const;

// decision 362
/** x · Wᵀ on the last axis of x, for a matrix that stays packed; undefined where the target cannot, or the matrix is none such. */
export function packedProduct(
  graph: OnnxGraph,
  packed: PackedWeights,
  weight: StoredWeight,
  x: Value,
): Value | undefined {
  if (!isPacked(weight.dtype)) return undefined;
  const [rows = 1, columns = 1] = weight.shape;
  if (weight.packing?.format === "NF4") return nf4Product(graph, packed, weight, weight.packing, x);
  const found = packed.codes(weight, graph.target.groups ?? []);
  if (found === undefined) return undefined;
  const { group, codes, scales, lows, offsets, centre } = found;
  // accuracy_level 4 would round x to 8 bits
  const attributes = { K: { int: columns }, N: { int: rows }, bits: { int: 4 }, block_size: { int: group } };
  const storedScales = graph.stored(scales);
  const times = (value: Value, tensor: MadeTensor): Value =>
    graph.node("MatMulNBits", [value, graph.stored(tensor), storedScales], attributes, MICROSOFT);
  const add = (a: Value, b: Value): Value => graph.node("Add", [a, b]);
  const scaled = (value: Value, factor: number): Value => graph.node("Mul", [value, graph.floats([factor], [])]);
  // the operator takes 8 bits too, in thirty times the time of 4
  const product = lows === undefined ? times(x, codes) : add(times(scaled(x, 16), codes), times(x, lows));
  if (offsets === undefined && centre === 0) return product;
  const sums = sumsOfGroups(graph, x, group, columns / group);
  const rest =
    offsets === undefined
      ? matMulTransposed(graph, scaled(sums, centre), storedScales)
      : matMulTransposed(graph, sums, graph.stored(offsets));
  return add(product, graph.node("Reshape", [rest, graph.node("Shape", [product])]));
}

/** Sums of the groups of x, [rows, groups], whatever the rank of x is. */
function sumsOfGroups(graph: OnnxGraph, x: Value, group: number, groups: number): Value {
  const apart = graph.node("Reshape", [x, graph.ints([-1, groups, group])]);
  return graph.node("ReduceSum", [apart, graph.ints([2])], { keepdims: { int: 0 } });
}

const NF4 = 1;

/** The same by the operator that takes the file's own bytes. */
function nf4Product(
  graph: OnnxGraph,
  packed: PackedWeights,
  weight: StoredWeight,
  { largest, nested, group }: Packing & { format: "NF4" },
  x: Value,
): Value | undefined {
  const [rows = 1, columns = 1] = weight.shape;
  if (weight.shape.length !== 2 || !graph.target.groups?.includes(group)) return undefined;
  const codes = graph.stored({ ...weight, dtype: "U8", shape: [weight.to - weight.from] });
  const magnitudes = graph.stored(nested === undefined ? largest : packed.largest(weight));
  const attributes = { K: { int: columns }, N: { int: rows }, block_size: { int: group }, quant_type: { int: NF4 } };
  return graph.node("MatMulBnb4", [x, codes, magnitudes], attributes, MICROSOFT);
}
