import type { OnnxGraph, Value } from "../../onnx/graph.js";
import { matMulTransposed } from "../../onnx/products.js";
import type { WeightChange } from "../network.js";
import { type Delta, deltasOf } from "./deltas.js";
import type { LoraModule } from "./lora-file.js";
import { type Expression, list, ModuleTensors, reshaped, scaled, sizeOf } from "./module-tensors.js";

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
 * ComfyUI does; or by input channels, with those of the merged weight. undefined where the file has no norms.
 */
function decomposition(
  tensors: ModuleTensors,
): ((graph: OnnxGraph, merged: Value, original: Value) => Value) | undefined {
  const norms = tensors.get("dora_scale");
  if (norms === undefined) return undefined;
  // norms alone are no change
  if (!tensors.has("up", "diff", "hada_w1_a", "lokr_w1", "lokr_w1_a")) tensors.require("up");
  const { shape } = norms.weight;
  const { rows, channels, columns } = tensors;
  const value = tensors.floats(norms);
  if (shape[0] === rows && sizeOf(shape) === rows)
    return (graph, merged, original) =>
      renormed(graph, merged, original, reshaped(graph, value(graph), [rows, 1]), [1]);
  if (shape[1] !== channels || sizeOf(shape) !== channels)
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
