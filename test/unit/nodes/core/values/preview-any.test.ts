import assert from "node:assert/strict";
import { executeGraph, invokeNode, Tensor } from "latentkit";

describe("PreviewAny", () => {
  const textOf = async (source: unknown) => (await invokeNode("PreviewAny", { source })).ui?.text;

  it("shows any value as text", async () => {
    assert.deepEqual(await textOf("a fox"), ["a fox"]);
    assert.deepEqual(await textOf(7), ["7"]);
    assert.deepEqual(await textOf(true), ["True"]);
    assert.deepEqual(await textOf({ a: [1, 2] }), ['{\n    "a": [\n        1,\n        2\n    ]\n}']);
    assert.deepEqual(await textOf(Tensor.zeros([1, 2])), ["Tensor [1,2] float32"]);
  });

  it("is an output of a graph", async () => {
    const graph = {
      1: { class_type: "PrimitiveFloat", inputs: { value: 0.5 } },
      2: { class_type: "PreviewAny", inputs: { source: ["1", 0] } },
    };
    const texts: unknown[] = [];
    for await (const event of executeGraph(graph)) if (event.type === "node-done") texts.push(event.ui?.text);
    assert.deepEqual(texts, [undefined, ["0.5"]]);
  });
});
