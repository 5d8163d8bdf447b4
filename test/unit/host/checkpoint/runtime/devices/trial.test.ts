import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { judge } from "#src/host/checkpoint/runtime/devices/trial.js";
import { rejectsAs } from "../../../../../helpers/errors.js";
import { slowInput, slowSource } from "../../../../../helpers/models/runtime-graphs.js";
import { runtimeProcesses } from "../../../../../helpers/process/runtime-processes.js";

describe("judge", () => {
  it("finds the CPU good", async () => {
    const verdict = await judge("cpu");
    assert.equal(verdict.isUsable, true);
  });

  it("refuses other numbers", async () => {
    // no number equals a logarithm of -1
    const graph = new OnnxGraph("log");
    const x = graph.input("x", "float", [2]);
    graph.output(graph.node("Log", [x]), "y", "float", [2]);
    const probe = { graph: graph.encode({ overridable: false }), feeds: { x: Tensor.from([1, -1], [2]) } };
    const verdict = await judge("cpu", { probes: () => [probe] });
    assert.match(verdict.isUsable ? "" : verdict.reason, /differ from the CPU's by Infinity/);
  });

  it("refuses what takes too long or fails", async () => {
    const slow = { graph: await slowSource(3000).make("fold"), feeds: { x: slowInput() } };
    const late = await judge("cpu", { probes: () => [slow], timeoutMs: 300 });
    assert.match(late.isUsable ? "" : late.reason, /did not finish within 0\.3 s\.$/);
    const broken = { graph: { bytes: Uint8Array.of(1), folder: "", files: [] }, feeds: {} };
    const failed = await judge("cpu", { probes: () => [broken] });
    assert.match(failed.isUsable ? "" : failed.reason, /^its trial failed: /);
  });

  it("is cut by a signal whatever it does, and leaves no process", async function () {
    const slow = { graph: await slowSource(3000).make("fold"), feeds: { x: slowInput() } };
    for (const afterMs of [0, 50, 1000]) {
      const abort = new AbortController();
      const trial = judge("cpu", { probes: () => [slow], signal: abort.signal });
      const cut = rejectsAs(abort.signal, trial);
      await sleep(afterMs);
      assert.equal(runtimeProcesses(this).length, 1);
      abort.abort();
      await cut;
      assert.deepEqual(runtimeProcesses(this), []);
      // one that has begun too late
      await rejectsAs(abort.signal, judge("cpu", { signal: abort.signal }));
    }
  });

  it("says what to install if a provider's libraries or drivers are missing", async () => {
    const cuda = await judge("cuda");
    if (process.platform === "linux" && !cuda.isUsable) assert.match(cuda.reason, /--onnxruntime-node-install=cuda12/);
    const { VK_ICD_FILENAMES, VK_DRIVER_FILES } = process.env;
    Object.assign(process.env, { VK_ICD_FILENAMES: "/nowhere.json", VK_DRIVER_FILES: "/nowhere.json" });
    try {
      const webgpu = await judge("webgpu");
      if (process.platform === "linux")
        assert.match(webgpu.isUsable ? "" : webgpu.reason, /^no GPU was found: .*libvulkan1/);
    } finally {
      restore({ VK_ICD_FILENAMES, VK_DRIVER_FILES });
    }
  });
});

function restore(variables: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}
