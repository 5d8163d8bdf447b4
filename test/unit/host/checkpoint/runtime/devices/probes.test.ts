import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import ort from "onnxruntime-node";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { comparedProbes, type Probe, speedProbe } from "#src/host/checkpoint/runtime/devices/probes.js";
import { OnnxSession } from "#src/host/checkpoint/runtime/onnx-session.js";
import { sessionOptions } from "#src/host/checkpoint/session/options.js";

const PLAIN: Target = {
  attention: "plain",
  largestHead: 256,
  matMul: "transposed",
  convChannels: "fours",
  halfTypes: [],
};
const FLOATS: Target = { ...CPU_TARGET, halfTypes: [] };

describe("probes of a trial", () => {
  it("have values of order 1, which attention and convolutions change", async () => {
    for (const probe of comparedProbes(FLOATS)) {
      const values = await outputsOf(probe);
      assert.ok(rms(values) > 0.1 && rms(values) < 10, String(rms(values)));
      const keys = Object.keys(probe.feeds).filter((key) => /(attn\d\.to_q|q_proj)\.weight$/.test(key));
      assert.ok(keys.length > 0);
      const without = Object.fromEntries(keys.map((key) => [key, Tensor.zeros(probe.feeds[key]!.shape)]));
      const changed = await outputsOf({ ...probe, feeds: { ...probe.feeds, ...without } });
      // above the tolerance of a trial
      const difference = rms(changed.map((value, i) => value - values[i]!));
      assert.ok(difference > 0.01, String(difference));
    }
  });

  it("compute the same in a GPU's forms, without operators that it may lack", async () => {
    const make = (target: Target) => [...comparedProbes(target), speedProbe(target)];
    const [fused, plain] = [make(FLOATS), make(PLAIN)];
    for (const [index, probe] of plain.entries()) {
      for (const operator of ["FusedMatMul", "MultiHeadAttention"]) {
        assert.ok(Buffer.from(fused[index]!.graph.bytes).includes(operator));
        assert.ok(!Buffer.from(probe.graph.bytes).includes(operator), operator);
      }
      assertClose(await outputsOf(probe), await outputsOf(fused[index]!), 1e-5);
    }
  });

  it("have weights of 16 bits if the target takes them", async () => {
    const [floats, halves] = [comparedProbes(FLOATS), comparedProbes({ ...CPU_TARGET, halfTypes: ["F16"] })];
    for (const [index, probe] of halves.entries()) {
      const expected = await outputsOf(floats[index]!);
      const received = await outputsOf(probe);
      assert.notDeepEqual([...received], [...expected]);
      assertClose(received, expected, 5e-3);
    }
  });
});

/** All outputs one after another, for a single thread. */
async function outputsOf({ graph, feeds }: Probe): Promise<Float32Array> {
  const session = await OnnxSession.create(ort, graph.bytes, sessionOptions({ provider: "cpu", threads: 1 }, ""));
  const inputs = Object.entries(feeds).map(([name, feed]) => ({
    name,
    shape: feed.shape,
    values: "int64" in feed ? feed.int64 : feed.data,
  }));
  const outputs = await session.run(inputs);
  await session.release();
  return Float32Array.from(outputs.flatMap(({ values }) => [...values]));
}

const rms = (values: Float32Array): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);

function assertClose(received: Float32Array, expected: Float32Array, tolerance: number): void {
  const error = rms(received.map((value, i) => value - expected[i]!)) / rms(expected);
  assert.ok(error < tolerance, String(error));
}
