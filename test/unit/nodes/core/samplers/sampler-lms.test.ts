import assert from "node:assert/strict";
import { invokeNode } from "latentkit";

describe("SamplerLMS", () => {
  it("takes its options under the names of the solver", async () => {
    const [choice] = (await invokeNode("SamplerLMS", { order: 3 })).result;
    assert.deepEqual(choice, { sampler: "lms", options: { order: 3 } });
  });
});
