import assert from "node:assert/strict";
import { invokeNode, validateGraph } from "latentkit";

describe("Note", () => {
  it("has no outputs and needs no text", async () => {
    assert.deepEqual((await invokeNode("Note", {})).result, []);
    assert.deepEqual((await invokeNode("Note", { text: "read me" })).result, []);
  });

  it("does not keep a graph from being valid", async () => {
    const latent = { class_type: "EmptyLatentImage", inputs: { width: 16, height: 16, batch_size: 1 } };
    const save = { class_type: "SaveLatent", inputs: { samples: ["1", 0], filename_prefix: "a" } };
    const { ok } = await validateGraph({ 1: latent, 2: save, 3: { class_type: "Note", inputs: { text: "a" } } });
    assert.equal(ok, true);
  });
});
