import assert from "node:assert/strict";
import { invokeNode, registry, Tensor, validateGraph } from "latentkit";

describe("Reroute", () => {
  it("passes any value on as it is", async () => {
    for (const value of [7, "a", Tensor.zeros([1]), [1, 2], null])
      assert.equal((await invokeNode("Reroute", { "": value })).result[0], value);
    assert.deepEqual(registry.get("Reroute")!.outputs, [{ name: "", type: "*", list: false }]);
  });

  it("validates between a link and an input of any type", async () => {
    const graph = {
      1: { class_type: "EmptyLatentImage", inputs: { width: 16, height: 16, batch_size: 1 } },
      2: { class_type: "Reroute", inputs: { "": ["1", 0] } },
      3: { class_type: "SaveLatent", inputs: { samples: ["2", 0], filename_prefix: "a" } },
    };
    const { ok } = await validateGraph(graph);
    assert.equal(ok, true);
  });
});
