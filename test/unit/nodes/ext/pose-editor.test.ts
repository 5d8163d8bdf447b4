import assert from "node:assert/strict";
import { invokeNode, registry, validateGraph } from "latentkit";
import { refuses } from "../../../helpers/errors.js";

const KEY = "ext poseEditor";

describe("ext poseEditor", () => {
  it("returns nothing", async () => {
    assert.deepEqual(await invokeNode(KEY, { image: "pose.png" }), { result: [] });
    assert.deepEqual(registry.get(KEY)!.outputs, []);
  });

  it("takes numbers and booleans as text, refuses lists and objects", async () => {
    assert.deepEqual(await invokeNode(KEY, { image: 5 }), { result: [] });
    await refuses(invokeNode(KEY, { image: ["a"] }), "input.wrong-type", /"image"/);
    await refuses(invokeNode(KEY, { image: {} }), "input.wrong-type", /"image"/);
    await refuses(invokeNode(KEY, { image: null }), "input.missing", /"image"/);
  });

  it("refuses lists and objects in a graph too, where other nodes' texts take them", () => {
    for (const [image, ok] of [
      ["a.png", true],
      [7, true],
      [{ __value__: ["a"] }, false],
      [{ a: 1 }, false],
    ] as const) {
      const verdict = validateGraph({ 1: { class_type: KEY, inputs: { image } } }, { targets: ["1"] });
      assert.equal(verdict.ok, ok, JSON.stringify(image));
      if (!ok) assert.equal(verdict.nodeErrors["1"]!.errors[0]!.type, "invalid_input_type");
    }
  });
});
