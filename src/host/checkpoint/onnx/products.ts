import type { OnnxGraph, Value } from "./graph.js";

/** a · bᵀ for a matrix b. */
export const matMulTransposed = (graph: OnnxGraph, a: Value, b: Value): Value =>
  graph.target.matMul === "fused"
    ? graph.node("FusedMatMul", [a, b], { transB: { int: 1 } }, { domain: "com.microsoft" })
    : graph.node("MatMul", [a, graph.node("Transpose", [b], { perm: { ints: [1, 0] } })]);
