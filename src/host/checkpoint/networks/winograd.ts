import { MICROSOFT, type OnnxGraph, type Value } from "../onnx/graph.js";
import { matMulTransposed } from "../onnx/products.js";
import type { Network } from "../weights/network.js";
import { add, reshape } from "./layers.js";

// F(4x4, 3x3) with the points 0, 1, -1, 2, -2 and infinity. Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional
// Neural Networks" (2015), section 4.

/** Transforms six inputs. */
const OF_INPUTS = [
  [4, 0, -5, 0, 1, 0],
  [0, -4, -4, 1, 1, 0],
  [0, 4, -4, -1, 1, 0],
  [0, -2, -1, 2, 1, 0],
  [0, 2, -1, -2, 1, 0],
  [0, 4, 0, -5, 0, 1],
];
/** Transforms three weights. */
const OF_WEIGHTS = [
  [1 / 4, 0, 0],
  [-1 / 6, -1 / 6, -1 / 6],
  [-1 / 6, 1 / 6, -1 / 6],
  [1 / 24, 1 / 12, 1 / 6],
  [1 / 24, -1 / 12, 1 / 6],
  [0, 0, 1],
];
/** Makes four outputs. */
const TO_OUTPUTS = [
  [1, 1, 1, 1, 1, 0],
  [0, 1, -1, 2, -2, 0],
  [0, 1, 1, 4, 4, 0],
  [0, 1, -1, 8, -8, 1],
];
/** Side of a tile of outputs. */
export const TILE = 4;
/** Side of the inputs of a tile. */
const INPUTS = 6;
const POINTS = INPUTS * INPUTS;
/** Behind the last row or column, up to a whole tile. */
const END = 2 ** 31;

/** Both directions of a transformation: [rows², columns²]. */
const squared = (matrix: readonly (readonly number[])[]): number[] =>
  matrix.flatMap((a) => matrix.flatMap((b) => a.flatMap((first) => b.map((second) => first * second))));

interface TileOptions {
  /** Whether both sides are known to be multiples of a tile, and twice as high as one at least. */
  readonly isWhole: boolean;
  /** Whether upper and lower half are computed one after the other, in half the memory; of whole tiles. */
  readonly inHalves?: boolean;
}

// decisions: The VAE's convolutions are computed in tiles
/**
 * A 3x3 convolution with a margin of one, of one picture [1, inputs, h, w], in tiles of 4x4: 36 products for the 144 of the
 * plain one, which differs by rounding. Weights are transformed in each run, in a fraction of what they save: transformed
 * ones are four times as large. Throws as the network's weights do.
 */
export function convInTiles(
  network: Network,
  key: string,
  x: Value,
  [inputs, outputs]: readonly [number, number],
  { isWhole, inHalves = false }: TileOptions,
): Value {
  const { graph } = network;
  const weight = network.lateWeight(`${key}.weight`, [outputs, inputs, 3, 3], x);
  const rows = reshape(graph, graph.after(weight, x), [outputs * inputs, 9]);
  const transformed = matMulTransposed(graph, graph.floats(squared(OF_WEIGHTS), [POINTS, 9]), rows);
  const weights = reshape(graph, transformed, [POINTS, outputs, inputs]);
  const part = (value: Value, pads: readonly number[]): Value =>
    ofTiles(graph, weights, value, [inputs, outputs], pads);
  let y: Value;
  if (inHalves) {
    const height = graph.node("Shape", [x], { start: { int: 2 }, end: { int: 3 } });
    const middle = graph.node("Div", [height, graph.ints([2])]);
    const sliced = (from: Value, to: Value): Value => graph.node("Slice", [x, from, to, graph.ints([2])]);
    const upper = sliced(graph.ints([0]), graph.node("Add", [middle, graph.ints([1])]));
    const lower = sliced(graph.node("Sub", [middle, graph.ints([1])]), graph.ints([END]));
    y = graph.node("Concat", [part(upper, [1, 1, 0, 1]), part(lower, [0, 1, 1, 1])], { axis: { int: 2 } });
  } else if (isWhole) {
    y = part(x, [1, 1, 1, 1]);
  } else {
    const sides = graph.node("Shape", [x], { start: { int: 2 } });
    y = graph.node("Slice", [part(x, [1, 1, TILE, TILE]), graph.ints([0, 0]), sides, graph.ints([2, 3])]);
  }
  return add(graph, y, reshape(graph, network.weight(`${key}.bias`, [outputs]), [outputs, 1, 1]));
}

/** [1, outputs, …] of the tiles of x [1, inputs, …] with pads at top, left, bottom and right. */
function ofTiles(
  graph: OnnxGraph,
  weights: Value,
  x: Value,
  [inputs, outputs]: readonly [number, number],
  pads: readonly number[],
): Value {
  const planes = reshape(graph, x, [inputs, 1, 0, 0]);
  const points = graph.node("Conv", [planes, graph.floats(squared(OF_INPUTS), [POINTS, 1, INPUTS, INPUTS])], {
    kernel_shape: { ints: [INPUTS, INPUTS] },
    strides: { ints: [TILE, TILE] },
    pads: { ints: pads },
  });
  // [inputs, 36, tiles] as 36 matrices [inputs, tiles]
  const products = graph.node(
    "FusedMatMul",
    [weights, reshape(graph, points, [0, 0, -1])],
    { transBatchB: { int: 1 } },
    MICROSOFT,
  );
  const tiles = graph.node("MatMul", [
    graph.floats(squared(TO_OUTPUTS), [TILE * TILE, POINTS]),
    reshape(graph, products, [POINTS, -1]),
  ]);
  // [4 rows, 4 columns, outputs · tile rows · tile columns]: columns, then rows move into their tiles
  const byColumn = graph.node("Transpose", [reshape(graph, tiles, [TILE, TILE, -1])], { perm: { ints: [0, 2, 1] } });
  const across = graph.node("Shape", [points], { start: { int: 3 } });
  const width = graph.node("Mul", [across, graph.ints([TILE])]);
  const shaped = (value: Value, sides: readonly number[]): Value =>
    graph.node("Reshape", [value, graph.node("Concat", [graph.ints(sides), width], { axis: { int: 0 } })]);
  const byRow = graph.node("Transpose", [shaped(byColumn, [TILE, -1])], { perm: { ints: [1, 0, 2] } });
  return shaped(byRow, [1, outputs, -1]);
}
