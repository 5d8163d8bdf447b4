import type { OnnxGraph, Value } from "../../onnx/graph.js";
import { matMulTransposed } from "../../onnx/products.js";
import { isPacked } from "../packed-types.js";
import type { Packing, StoredWeight } from "../stored.js";
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
  if (weight.packing?.format === "NF4") return nf4Product(graph, packed, weight, weight.packing, x);
  const found = packed.codes(weight, graph.target.groups ?? []);
  if (found === undefined) return undefined;
  const { bits, group, codes, scales, offsets } = found;
  // accuracy_level 4 would round x to 8 bits
  const attributes = { K: { int: columns }, N: { int: rows }, bits: { int: bits }, block_size: { int: group } };
  const inputs = [x, graph.stored(codes), graph.stored(scales)];
  const product = graph.node("MatMulNBits", inputs, attributes, MICROSOFT);
  return offsets === undefined ? product : withOffsets(graph, product, x, group, offsets);
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

/** Adds what offsets [rows, groups] make of the sums of each group of x, whatever the rank of x is. */
function withOffsets(graph: OnnxGraph, product: Value, x: Value, group: number, offsets: MadeTensor): Value {
  const [, groups] = offsets.shape;
  const apart = graph.node("Reshape", [x, graph.ints([-1, groups!, group])]);
  const sums = graph.node("ReduceSum", [apart, graph.ints([2])], { keepdims: { int: 0 } });
  const matrix = matMulTransposed(graph, sums, graph.stored(offsets));
  return graph.node("Add", [product, graph.node("Reshape", [matrix, graph.node("Shape", [product])])]);
}
