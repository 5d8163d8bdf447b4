import { describe, LatentkitError } from "../../../base/errors.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import { floatsOf, hasFittingFactor } from "../weights/network.js";
import { quotedName, valuesIn } from "../weights/stored.js";
import type { LoraModule, LoraTensor, TensorRole } from "./recognise.js";

/** A value that is written into a graph when a weight needs it. */
export type Expression = (graph: OnnxGraph) => Value;

/** A rank above the sides of all weights: intermediate products have as many rows, however small the file is. */
const MOST_RANK = 8192;
/** Sides that a message shows. */
const MOST_SHOWN = 8;

/** The tensors of a LoRA for one weight, as matrices whose shapes are checked: a weight is one of its first side by all others. */
export class ModuleTensors {
  readonly rows: number;
  readonly columns: number;
  /** Input channels: the columns without the kernel of a convolution. */
  readonly channels: number;
  /** Sides of a convolution's kernel, none for other weights. */
  readonly kernel: readonly number[];
  readonly #name: string;
  readonly #module: LoraModule;
  readonly #shape: readonly number[];

  constructor(name: string, module: LoraModule, shape: readonly number[]) {
    this.#name = name;
    this.#module = module;
    this.#shape = shape;
    [this.rows, this.channels] = [shape[0] ?? 1, shape[1] ?? 1];
    this.kernel = shape.slice(2);
    this.columns = this.channels * valuesIn(this.kernel);
  }

  get(role: TensorRole): LoraTensor | undefined {
    return this.#module.tensors.get(role);
  }

  has(...roles: readonly TensorRole[]): boolean {
    return roles.some((role) => this.#module.tensors.has(role));
  }

  /** Throws model.invalid if the module has no such tensor. */
  require(role: TensorRole): LoraTensor {
    const tensor = this.get(role);
    if (tensor !== undefined) return tensor;
    const [first] = this.#module.tensors.values();
    throw new LatentkitError(
      "model.invalid",
      `LoRA ${quotedName(this.#name)}: expected a tensor ${role} beside ${describe(first?.key)}, received none.`,
    );
  }

  /** A tensor as a float32 matrix, its sides after the first being one. Throws model.invalid for other sizes. */
  matrix(tensor: LoraTensor, rows: number, columns: number): Expression {
    if (!isEqual(flatSides(tensor), [rows, columns])) throw this.misfit(tensor, list([rows, columns]));
    const value = this.floats(tensor);
    if (tensor.weight.shape.length === 2) return value;
    return (graph) => reshaped(graph, value(graph), [rows, columns]);
  }

  /** A kernel [i, j, …] and the matrix b [j, channels], summed over j: a matrix [i, columns of a convolution]. */
  contracted(kernel: LoraTensor, b: LoraTensor, channels: number): Expression {
    const [rank, inner] = [this.rank(kernel), this.rank(b)];
    const sides = [rank, inner, ...this.kernel];
    if (this.kernel.length === 0 || !isEqual(kernel.weight.shape, sides)) throw this.misfit(kernel, list(sides));
    const size = valuesIn(this.kernel);
    const [left, right] = [this.floats(kernel), this.matrix(b, inner, channels)];
    return (graph) => {
      const flat = reshaped(graph, left(graph), [rank, inner, size]);
      const sum = graph.node("MatMul", [turned(graph, flat), right(graph)]);
      return reshaped(graph, turned(graph, sum), [rank, channels * size]);
    };
  }

  /** A tensor as float32, of its own shape. Throws model.invalid for types other than floats. */
  floats(tensor: LoraTensor): Expression {
    const { weight } = tensor;
    if (!weight.dtype.includes("F")) throw this.misfit(tensor, "a type of floats", weight.dtype);
    const { factor } = weight;
    if (factor !== undefined && !(factor.dtype.includes("F") && hasFittingFactor(weight)))
      throw this.misfit({ key: factor.key, weight: factor }, "floats, one or one for each row");
    return (graph) => floatsOf(graph, weight);
  }

  /** First side of a tensor over whose rows a product sums. */
  rank(tensor: LoraTensor): number {
    const rank = tensor.weight.shape[0] ?? 1;
    if (rank >= 1 && rank <= MOST_RANK) return rank;
    throw this.misfit(tensor, `a rank from 1 to ${MOST_RANK}`);
  }

  /** alpha / rank, or 1 if the file has no alpha. */
  factor(rank: number): number {
    const { alpha, isRankStabilised } = this.#module;
    if (alpha === undefined) return 1;
    return alpha / (isRankStabilised ? Math.sqrt(rank) : rank);
  }

  /** The error for a tensor that does not fit the weight. */
  misfit({ key, weight }: LoraTensor, expected: string, received = list(weight.shape)): LatentkitError {
    const subject = `LoRA ${quotedName(this.#name)} does not fit the model: tensor ${quotedName(key)}`;
    const message = `${subject}, for a weight of ${list(this.#shape)}, expected ${expected}, received ${received}.`;
    return new LatentkitError("model.invalid", message, { expected, received });
  }
}

export const reshaped = (graph: OnnxGraph, value: Value, sides: readonly number[]): Value =>
  graph.node("Reshape", [value, graph.ints(sides)]);

export const scaled = (graph: OnnxGraph, value: Value, factor: number): Value =>
  graph.node("Mul", [value, graph.floats([factor], [])]);

/** Sides of a tensor as a matrix. */
export const flatSides = ({ weight: { shape } }: LoraTensor): [number, number] => [
  shape[0] ?? 1,
  valuesIn(shape.slice(1)),
];

/** Sides for a message; a foreign file may have any number of them. */
export const list = (sides: readonly number[]): string =>
  sides.length <= MOST_SHOWN ? `[${sides.join(", ")}]` : `${sides.length} sides`;

/** Swaps the last two of three axes. */
const turned = (graph: OnnxGraph, value: Value): Value =>
  graph.node("Transpose", [value], { perm: { ints: [0, 2, 1] } });

const isEqual = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((side, axis) => side === b[axis]);
