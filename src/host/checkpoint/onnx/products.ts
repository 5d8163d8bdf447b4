import { MICROSOFT, type OnnxGraph, type Value } from "./graph.js";

/** a · bᵀ for a matrix b. */
export const matMulTransposed = (graph: OnnxGraph, a: Value, b: Value): Value =>
  graph.target.matMul === "fused"
    ? graph.node("FusedMatMul", [a, b], { transB: { int: 1 } }, MICROSOFT)
    : graph.node("MatMul", [a, transposed(graph, b)]);

/** A matrix with its axes exchanged. */
export const transposed = (graph: OnnxGraph, matrix: Value): Value =>
  graph.node("Transpose", [matrix], { perm: { ints: [1, 0] } });

/**
 * Outputs from which on each of 16 threads has more than 64 columns. ONNX Runtime divides the longer side of a product among
 * threads, and a thread with fewer columns adds up longer pieces, which changes the last bits; a weight that was packed in
 * loading is exempt.
 */
const ENOUGH_COLUMNS = 16 * 80;

export interface ProductOptions {
  /** Rank of an x that has fewer rows than there are outputs: 2 for vectors, 3 for prompts. Absent: the run compares them. */
  readonly few?: 2 | 3;
}

/**
 * x · Wᵀ of x […, inputs] and a weight [outputs, inputs], with the same bits for 1 to 16 threads. A streamed weight is the
 * first operand if it has more rows than x: threads then share these.
 */
export function product(
  graph: OnnxGraph,
  x: Value,
  weight: Value,
  [inputs, outputs]: readonly [number, number],
  { few }: ProductOptions = {},
): Value {
  if (!graph.isStreamed || (outputs >= ENOUGH_COLUMNS && few === undefined)) return matMulTransposed(graph, x, weight);
  const weightFirst = (rows: Value, perm: readonly number[]): Value =>
    graph.node("Transpose", [matMulTransposed(graph, weight, rows)], { perm: { ints: perm } });
  if (few !== undefined) return weightFirst(x, few === 2 ? [1, 0] : [0, 2, 1]);
  const rows = graph.node("Reshape", [x, graph.ints([-1, inputs])]);
  const count = graph.node("Shape", [rows], { end: { int: 1 } });
  // each choice takes a millisecond of loading
  const sums = graph.choice(
    graph.node("Less", [count, graph.ints([outputs])]),
    () => weightFirst(rows, [1, 0]),
    () => matMulTransposed(graph, rows, weight),
  );
  const sides = [graph.node("Shape", [x], { end: { int: -1 } }), graph.ints([outputs])];
  return graph.node("Reshape", [sums, graph.node("Concat", sides, { axis: { int: 0 } })]);
}
