import type { OnnxGraph, Value } from "../../onnx/graph.js";
import { matMulTransposed } from "../../onnx/products.js";
import { isPacked } from "../packed-types.js";
import type { StoredWeight } from "../stored.js";
import type { MadeTensor, PackedWeights } from "./packed-weights.js";

/** Operators that only ONNX Runtime has. */
const MICROSOFT = { domain: "com.microsoft" } as const;

/** x · Wᵀ on the last axis of x, for a matrix that stays packed; undefined where the target cannot, or the matrix is none such. */
export function packedProduct(
  graph: OnnxGraph,
  packed: PackedWeights,
  weight: StoredWeight,
  x: Value,
): Value | undefined {
  if (!isPacked(weight.dtype)) return undefined;
  const [rows = 1, columns = 1] = weight.shape;
  const found = packed.codes(weight, graph.target.groups ?? []);
  if (found === undefined) return undefined;
  const { bits, group, codes, scales, offsets } = found;
  // accuracy_level 4 would round x to 8 bits
  const attributes = { K: { int: columns }, N: { int: rows }, bits: { int: bits }, block_size: { int: group } };
  const inputs = [x, graph.stored(codes), graph.stored(scales)];
  const product = graph.node("MatMulNBits", inputs, attributes, MICROSOFT);
  return offsets === undefined ? product : withOffsets(graph, product, x, group, offsets);
}

/** Adds what offsets [rows, groups] make of the sums of each group of x, whatever the rank of x is. */
function withOffsets(graph: OnnxGraph, product: Value, x: Value, group: number, offsets: MadeTensor): Value {
  const [, groups] = offsets.shape;
  const apart = graph.node("Reshape", [x, graph.ints([-1, groups!, group])]);
  const sums = graph.node("ReduceSum", [apart, graph.ints([2])], { keepdims: { int: 0 } });
  const matrix = matMulTransposed(graph, sums, graph.stored(offsets));
  return graph.node("Add", [product, graph.node("Reshape", [matrix, graph.node("Shape", [product])])]);
}
