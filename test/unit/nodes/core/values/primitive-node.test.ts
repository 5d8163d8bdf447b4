import assert from "node:assert/strict";
import { executeGraph, type Latent } from "latentkit";

describe("PrimitiveNode", () => {
  it("gives its value to the input it is linked to", async () => {
    const graph = {
      1: { class_type: "PrimitiveNode", inputs: { value: 32 } },
      2: { class_type: "EmptyLatentImage", inputs: { width: ["1", 0], height: 16, batch_size: 1 } },
    };
    const latents: Latent[] = [];
    for await (const event of executeGraph(graph, { targets: ["2"] }))
      if (event.type === "run-done") latents.push(event.outputs["2"]![0] as Latent);
    assert.deepEqual(
      latents.map(({ samples }) => samples.shape),
      [[1, 4, 2, 4]],
    );
  });
});
