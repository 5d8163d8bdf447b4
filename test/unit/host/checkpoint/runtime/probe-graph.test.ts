import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { probeGraph } from "#src/host/checkpoint/runtime/probe-graph.js";
import { graphSession } from "../../../../helpers/models/session.js";

describe("probeGraph", () => {
  it("has values of order 1, which its attention and convolutions change", async () => {
    const { graph, feeds } = probeGraph();
    const session = await graphSession(graph);
    const { out } = await session.run(feeds);
    assert.deepEqual(out!.shape, [2, 4, 16, 16]);
    const rms = (values: Float32Array) =>
      Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);
    const size = rms(out!.data);
    assert.ok(size > 0.1 && size < 10, String(size));
    const attentionKeys = Object.keys(feeds).filter((key) => /attn\d\.to_q\.weight$/.test(key));
    assert.ok(attentionKeys.length > 0);
    const without = Object.fromEntries(attentionKeys.map((key) => [key, Tensor.zeros(feeds[key]!.shape)]));
    const changed = (await session.run({ ...feeds, ...without })).out!;
    const difference = rms(changed.data.map((value, i) => value - out!.data[i]!));
    // far above the tolerance of a trial
    assert.ok(difference > 0.02, String(difference));
    await session.release();
  });
});
