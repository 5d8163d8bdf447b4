import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { type Rows, thirdOf, withChangedRows } from "#src/host/checkpoint/lora/places.js";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { graphSession } from "../../../../helpers/models/session.js";

/** 0 … 5 after changes of some of them: each takes the rows in its order and adds 10, 20 … to the first, the second … */
async function changed(axis: 0 | 1, ...all: Rows[]): Promise<number[]> {
  const graph = new OnnxGraph("rows");
  const shape = axis === 0 ? [6, 1] : [1, 6];
  const changes = all.map((rows) => ({
    rows,
    change: (part: Value) => {
      const count = rows.reduce((sum, [start, end]) => sum + end - start, 0);
      const tens = Array.from({ length: count }, (_, index) => 10 * (index + 1));
      return graph.node("Add", [part, graph.floats(tens, axis === 0 ? [count, 1] : [1, count])]);
    },
  }));
  const x = graph.input("x", "float", shape);
  graph.output(withChangedRows(graph, x, { axis, length: 6 }, changes), "out", "float", shape);
  const session = await graphSession(graph.encode({ overridable: false }));
  const { out } = await session.run({ x: Tensor.from([0, 1, 2, 3, 4, 5], shape) });
  await session.release();
  return [...out!.data];
}

describe("withChangedRows", () => {
  it("changes thirds, rows in another order, and rows of several changes, on either axis", async () => {
    for (const axis of [0, 1] as const) {
      assert.deepEqual(await changed(axis, thirdOf(6, 1)), [0, 1, 12, 23, 4, 5]);
      assert.deepEqual(await changed(axis, thirdOf(6, 0), thirdOf(6, 2)), [10, 21, 2, 3, 14, 25]);
      const halves: Rows = [
        [3, 6],
        [0, 3],
      ];
      assert.deepEqual(await changed(axis, halves), [40, 51, 62, 13, 24, 35]);
      assert.deepEqual(await changed(axis, [[1, 4]], [[2, 6]]), [0, 11, 32, 53, 34, 45]);
      assert.deepEqual(await changed(axis, [[0, 6]]), [10, 21, 32, 43, 54, 65]);
    }
  });
});
