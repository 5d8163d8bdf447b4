import type { OnnxGraph, Value } from "../../onnx/graph.js";

/** Rows of a weight that a layer is, as ranges in the layer's order. */
export type Rows = readonly (readonly [start: number, end: number])[];

/** Rows of one of three layers that are one weight of so many rows. */
export const thirdOf = (rows: number, index: 0 | 1 | 2): Rows => [[(index * rows) / 3, ((index + 1) * rows) / 3]];

/** Number of all rows. */
export const lengthOf = (rows: Rows): number => rows.reduce((sum, [start, end]) => sum + end - start, 0);

/** Change of some rows. */
export interface RowsChange {
  readonly rows: Rows;
  change(part: Value): Value;
}

/** A value of `length` rows on an axis, some of them changed, in order. It is taken apart once. */
export function withChangedRows(
  graph: OnnxGraph,
  whole: Value,
  { axis, length }: { axis: number; length: number },
  changes: readonly RowsChange[],
): Value {
  const starts = [...new Set([0, ...changes.flatMap(({ rows }) => rows.flat())])]
    .filter((start) => start < length)
    .sort((a, b) => a - b);
  const sizes = starts.map((start, i) => (starts[i + 1] ?? length) - start);
  const parts = [...split(graph, whole, axis, sizes)];
  for (const { rows, change } of changes) {
    const indexes = rows.flatMap(([start, end]) =>
      starts.flatMap((from, index) => (from >= start && from < end ? [index] : [])),
    );
    const changed = change(
      join(
        graph,
        indexes.map((index) => parts[index]!),
        axis,
      ),
    );
    const own = split(
      graph,
      changed,
      axis,
      indexes.map((index) => sizes[index]!),
    );
    for (const [i, index] of indexes.entries()) parts[index] = own[i]!;
  }
  return join(graph, parts, axis);
}

function split(graph: OnnxGraph, value: Value, axis: number, sizes: readonly number[]): readonly Value[] {
  if (sizes.length === 1) return [value];
  return graph.nodeWithOutputs("Split", [value, graph.ints(sizes)], sizes.length, { axis: { int: axis } });
}

const join = (graph: OnnxGraph, values: readonly Value[], axis: number): Value =>
  values.length === 1 ? values[0]! : graph.node("Concat", values, { axis: { int: axis } });
