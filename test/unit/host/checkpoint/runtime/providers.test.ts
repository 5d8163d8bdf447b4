import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { chooseProvider, tryProvider, tryProviders } from "#src/host/checkpoint/runtime/providers.js";
import { refuses } from "../../../../helpers/errors.js";
import { slowInput, slowSource } from "../../../../helpers/models/runtime-graphs.js";

describe("providers", () => {
  it("each have a verdict, the CPU's a good one", async () => {
    const { verdicts } = await tryProviders();
    assert.deepEqual(
      verdicts.map(({ provider }) => provider),
      ["cpu", "cuda", "dml", "coreml", "webgpu"],
    );
    assert.equal(verdicts[0]!.isUsable, true);
    for (const { isUsable, reason } of verdicts) if (!isUsable) assert.match(reason, /^\S.*\.$/);
  });

  it("of other systems are not usable", async () => {
    const provider = process.platform === "win32" ? "coreml" : "dml";
    const { reason } = await tryProvider(provider);
    assert.match(reason!, /does not have it on/);
    await refuses(
      chooseProvider(provider),
      "device.unavailable",
      new RegExp(`^Provider ${provider}: onnxruntime-node`),
    );
  });

  it("fail their trial where the numbers differ", async () => {
    // no number equals a logarithm of -1
    const graph = new OnnxGraph("log");
    const x = graph.input("x", "float", [2]);
    graph.output(graph.node("Log", [x]), "y", "float", [2]);
    const made = { graph: graph.encode({ overridable: false }), feeds: { x: Tensor.from([1, -1], [2]) } };
    const probe = () => made;
    const { isUsable, reason } = await tryProvider("cpu", { probe });
    assert.equal(isUsable, false);
    assert.match(reason!, /differ from the CPU's by Infinity/);
  });

  it("fail their trial where it takes too long or fails", async () => {
    const slow = await slowProbe();
    const late = await tryProvider("cpu", { probe: () => slow, timeoutMs: 300 });
    assert.match(late.reason!, /did not end within 0\.3 s\.$/);
    const broken = { graph: { bytes: Uint8Array.of(1), folder: "", files: [] }, feeds: {} };
    assert.match((await tryProvider("cpu", { probe: () => broken })).reason!, /^its trial failed: /);
  });

  it("are chosen by name, or the best that works", async () => {
    assert.equal((await chooseProvider("cpu")).provider, "cpu");
    const { verdicts } = await tryProviders();
    const best = verdicts.find((verdict) => verdict.provider !== "cpu" && verdict.isUsable && !verdict.isSlow);
    assert.equal((await chooseProvider("auto")).provider, best?.provider ?? "cpu");
  });
});

async function slowProbe() {
  const { make } = slowSource(3000);
  return { graph: await make("fold"), feeds: { x: slowInput() } };
}
