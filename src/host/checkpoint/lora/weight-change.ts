import type { OnnxGraph, Value } from "../onnx/graph.js";
import { matMulTransposed } from "../onnx/products.js";
import type { WeightChange } from "../weights/network.js";
import { valuesIn } from "../weights/stored.js";
import { type Expression, flatSides, list, ModuleTensors, reshaped, scaled } from "./module-tensors.js";
import type { LoraModule, LoraTensor } from "./recognise.js";

/** Smallest float32 e for which 1 + e is not 1: keeps DoRA's division from zero. */
const EPSILON = 2 ** -23;

/**
 * Change of a layer's weight of that shape, `strength` times; undefined if the module has none. Throws model.invalid for
 * incomplete sets of tensors and for shapes that do not fit.
 */
export function weightChange(
  name: string,
  module: LoraModule,
  shape: readonly number[],
  strength: number,
): WeightChange | undefined {
  const tensors = new ModuleTensors(name, module, shape);
  const replacement = tensors.get("replacement");
  if (replacement !== undefined) {
    const whole = tensors.matrix(replacement, tensors.rows, tensors.columns);
    return (graph) => reshaped(graph, whole(graph), shape);
  }
  const deltas = deltasOf(tensors);
  const decompose = decomposition(tensors);
  if (deltas.length === 0) return undefined;
  const merged = (graph: OnnxGraph, weight: Value, times: number) =>
    deltas.reduce((sum, delta) => added(graph, sum, delta, times), weight);
  const isMatrix = shape.length === 2;
  const change: WeightChange = (graph, weight) => {
    const matrix = isMatrix ? weight : reshaped(graph, weight, [tensors.rows, tensors.columns]);
    let changed: Value;
    if (decompose === undefined) {
      changed = merged(graph, matrix, strength);
    } else {
      const difference = graph.node("Sub", [decompose(graph, merged(graph, matrix, 1), matrix), matrix]);
      changed = graph.node("Add", [matrix, scaled(graph, difference, strength)]);
    }
    return isMatrix ? changed : reshaped(graph, changed, shape);
  };
  if (!isMatrix || decompose !== undefined) return change;
  const ofProduct: WeightChange["ofProduct"] = (graph, product, x) =>
    deltas.reduce((sum, delta) => graph.node("Add", [sum, productWith(graph, x, delta, strength)]), product);
  return Object.assign(change, { ofProduct });
}

/** x · (times · delta)ᵀ, without the whole of a delta of low rank. */
function productWith(graph: OnnxGraph, x: Value, { factor, left, right }: Delta, times: number): Value {
  const inner = right === undefined ? x : matMulTransposed(graph, x, right(graph));
  return scaled(graph, matMulTransposed(graph, inner, left(graph)), times * factor);
}

/** Change of a layer's bias of that shape, as weightChange. */
export function biasChange(
  name: string,
  module: LoraModule,
  shape: readonly number[],
  strength: number,
): WeightChange | undefined {
  const tensors = new ModuleTensors(name, module, shape);
  const deltas: Expression[] = [];
  for (const role of ["diff_b", "b_norm"] as const) {
    const whole = tensors.get(role);
    if (whole) deltas.push(tensors.matrix(whole, tensors.rows, tensors.columns));
  }
  if (deltas.length === 0) return undefined;
  return (graph, bias) =>
    deltas.reduce((sum, delta) => {
      const ofBias = reshaped(graph, delta(graph), shape);
      return graph.node("Add", [sum, scaled(graph, ofBias, strength)]);
    }, bias);
}

/** weight + times * delta; a product of two matrices is added in the same operation. */
function added(graph: OnnxGraph, weight: Value, { factor, left, right }: Delta, times: number): Value {
  if (right === undefined) return graph.node("Add", [weight, scaled(graph, left(graph), times * factor)]);
  return graph.node("Gemm", [left(graph), right(graph), weight], { alpha: { float: times * factor } });
}

/**
 * DoRA: multiplies the merged weight by the file's norms over its own: by rows, with the norms of the original weight as
 * ComfyUI does; or by input channels, with those of the merged weight. undefined if the file has no norms.
 */
function decomposition(
  tensors: ModuleTensors,
): ((graph: OnnxGraph, merged: Value, original: Value) => Value) | undefined {
  const norms = tensors.get("dora_scale");
  if (norms === undefined) return undefined;
  // norms alone change nothing
  if (!tensors.has("up", "diff", "hada_w1_a", "lokr_w1", "lokr_w1_a")) tensors.require("up");
  const { shape } = norms.weight;
  const { rows, channels, columns } = tensors;
  const value = tensors.floats(norms);
  if (shape[0] === rows && valuesIn(shape) === rows)
    return (graph, merged, original) =>
      renormed(graph, merged, original, reshaped(graph, value(graph), [rows, 1]), [1]);
  if (shape[1] !== channels || valuesIn(shape) !== channels)
    throw tensors.misfit(norms, `${list([rows, 1])} or ${list([1, channels])}`);
  return (graph, merged) => {
    const byChannel = reshaped(graph, merged, [rows, channels, columns / channels]);
    const target = reshaped(graph, value(graph), [1, channels, 1]);
    return reshaped(graph, renormed(graph, byChannel, byChannel, target, [0, 2]), [rows, columns]);
  };
}

/** value * norms / (norm of reference along axes + epsilon). */
function renormed(graph: OnnxGraph, value: Value, reference: Value, norms: Value, axes: readonly number[]): Value {
  const sum = graph.node("ReduceSum", [graph.node("Mul", [reference, reference]), graph.ints(axes)]);
  const norm = graph.node("Add", [graph.node("Sqrt", [sum]), graph.floats([EPSILON], [])]);
  return graph.node("Mul", [value, graph.node("Div", [norms, norm])]);
}

/** A sum for a weight at strength 1, as a matrix: `factor` times `left`, or times the product of `left` and `right`. */
interface Delta {
  readonly factor: number;
  readonly left: Expression;
  readonly right?: Expression;
}

/** All sums that a LoRA has for a weight. Throws model.invalid for incomplete sets of tensors and shapes that do not fit. */
function deltasOf(tensors: ModuleTensors): Delta[] {
  const deltas: Delta[] = [];
  for (const role of ["diff", "w_norm"] as const) {
    const whole = tensors.get(role);
    if (whole) deltas.push({ factor: 1, left: tensors.matrix(whole, tensors.rows, tensors.columns) });
  }
  if (tensors.has("up", "down", "mid")) deltas.push(lowRankDelta(tensors));
  if (tensors.has("hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b", "hada_t1", "hada_t2"))
    deltas.push(hadamardDelta(tensors));
  if (tensors.has("lokr_w1", "lokr_w1_a", "lokr_w1_b", "lokr_w2", "lokr_w2_a", "lokr_w2_b", "lokr_t2"))
    deltas.push(kroneckerDelta(tensors));
  return deltas;
}

/** LoRA: up @ down. LoCon of a convolution: with a kernel between both. */
function lowRankDelta(tensors: ModuleTensors): Delta {
  const { rows, columns, channels } = tensors;
  const [up, down, mid] = [tensors.require("up"), tensors.require("down"), tensors.get("mid")];
  const rank = tensors.rank(down);
  const factor = tensors.factor(rank);
  if (mid === undefined)
    return { factor, left: tensors.matrix(up, rows, rank), right: tensors.matrix(down, rank, columns) };
  const right = tensors.contracted(mid, down, channels);
  return { factor, left: tensors.matrix(up, rows, tensors.rank(mid)), right };
}

/** LoHa: the product, element by element, of two matrices of low rank. */
function hadamardDelta(tensors: ModuleTensors): Delta {
  const { rows, channels, columns } = tensors;
  const half = (number: 1 | 2): Expression => {
    const [a, b] = [tensors.require(`hada_w${number}_a`), tensors.require(`hada_w${number}_b`)];
    const kernel = tensors.get(`hada_t${number}`);
    return kernel ? kernelProduct(tensors, kernel, a, b, rows, channels) : matrixProduct(tensors, a, b, rows, columns);
  };
  const [first, second] = [half(1), half(2)];
  const factor = tensors.factor(tensors.rank(tensors.require("hada_w1_b")));
  return { factor, left: (graph) => graph.node("Mul", [first(graph), second(graph)]) };
}

/** LoKr: the Kronecker product of two matrices, each whole or of low rank; the second has the kernel of a convolution. */
function kroneckerDelta(tensors: ModuleTensors): Delta {
  const { rows, columns, channels } = tensors;
  const first = factorOf(tensors, 1);
  const [rows1, columns1] = first.sides;
  if (rows % rows1 !== 0 || channels % columns1 !== 0)
    throw tensors.misfit(first.tensor, `sides that divide ${rows} and ${channels}`);
  const [rows2, channels2, columns2] = [rows / rows1, channels / columns1, columns / columns1];
  const second = factorOf(tensors, 2);
  const [outer, inner] = [first.matrix(rows1, columns1), second.matrix(rows2, columns2, channels2)];
  // the rank of the second counts if both are of low rank
  const ranked = second.ranked ?? first.ranked;
  return {
    factor: ranked === undefined ? 1 : tensors.factor(tensors.rank(ranked)),
    left: (graph) => {
      const blocks = reshaped(graph, outer(graph), [rows1, 1, columns1, 1]);
      const block = reshaped(graph, inner(graph), [1, rows2, 1, columns2]);
      return reshaped(graph, graph.node("Mul", [blocks, block]), [rows, columns]);
    },
  };
}

/** A factor of a Kronecker product. */
interface KroneckerFactor {
  /** The tensor that has its rows. */
  readonly tensor: LoraTensor;
  /** Rows and columns, without a kernel between its two parts. */
  readonly sides: readonly [number, number];
  /** Tensor whose rows are its rank; absent for a whole one. */
  readonly ranked?: LoraTensor;
  matrix(rows: number, columns: number, channels?: number): Expression;
}

function factorOf(tensors: ModuleTensors, number: 1 | 2): KroneckerFactor {
  const whole = tensors.get(`lokr_w${number}`);
  if (whole)
    return { tensor: whole, sides: flatSides(whole), matrix: (rows, columns) => tensors.matrix(whole, rows, columns) };
  const [a, b] = [tensors.require(`lokr_w${number}_a`), tensors.require(`lokr_w${number}_b`)];
  const kernel = number === 2 ? tensors.get("lokr_t2") : undefined;
  return {
    tensor: a,
    sides: [flatSides(a)[0], flatSides(b)[1]],
    ranked: b,
    matrix: (rows, columns, channels = columns) =>
      kernel ? kernelProduct(tensors, kernel, a, b, rows, channels) : matrixProduct(tensors, a, b, rows, columns),
  };
}

/** a @ b. */
function matrixProduct(
  tensors: ModuleTensors,
  a: LoraTensor,
  b: LoraTensor,
  rows: number,
  columns: number,
): Expression {
  const rank = tensors.rank(b);
  const [left, right] = [tensors.matrix(a, rows, rank), tensors.matrix(b, rank, columns)];
  return (graph) => graph.node("MatMul", [left(graph), right(graph)]);
}

/** Sum over i and j of kernel[i, j, …] * a[i, row] * b[j, channel]. */
function kernelProduct(
  tensors: ModuleTensors,
  kernel: LoraTensor,
  a: LoraTensor,
  b: LoraTensor,
  rows: number,
  channels: number,
): Expression {
  const left = tensors.matrix(a, tensors.rank(kernel), rows);
  const right = tensors.contracted(kernel, b, channels);
  return (graph) => graph.node("MatMul", [graph.node("Transpose", [left(graph)]), right(graph)]);
}
