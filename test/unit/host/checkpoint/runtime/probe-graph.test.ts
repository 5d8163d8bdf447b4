import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import type { Target } from "#src/host/checkpoint/onnx/target.js";
import { probeGraph } from "#src/host/checkpoint/runtime/probe-graph.js";
import { layerError } from "../../../../helpers/models/layers.js";
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

  it("computes the same in a GPU's forms, without operators that it may lack", async () => {
    const run = async (target?: Target) => {
      const { graph, feeds } = probeGraph(target);
      const session = await graphSession(graph);
      const { out } = await session.run(feeds);
      await session.release();
      return { out: out!, bytes: Buffer.from(graph.bytes) };
    };
    const expected = await run();
    const received = await run({ attention: "plain", largestHead: 256, matMul: "transposed" });
    for (const operator of ["FusedMatMul", "MultiHeadAttention"]) {
      assert.ok(expected.bytes.includes(operator));
      assert.ok(!received.bytes.includes(operator), operator);
    }
    const error = layerError(received.out, expected.out);
    assert.ok(error < 1e-5, String(error));
  });
});
