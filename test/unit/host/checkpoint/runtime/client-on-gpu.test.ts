import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { createRuntime } from "#src/host/checkpoint/runtime/client.js";
import { StoredVerdicts } from "#src/host/checkpoint/runtime/devices/choice.js";
import { RuntimeProcess } from "#src/host/checkpoint/runtime/process.js";
import type { DeviceReport, OwnRuntime, RuntimeOptions } from "#src/host/checkpoint/session/runtime.js";
import { refuses, rejectsAs } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import {
  type GraphSource,
  plusOneSource,
  productSource,
  slowInput,
  slowSource,
  stageSource,
} from "../../../../helpers/models/runtime-graphs.js";
import { runtimeProcesses } from "../../../../helpers/process/runtime-processes.js";
import { softwareGpu } from "../../../../helpers/process/software-gpu.js";

const values = ({ y }: Record<string, Tensor>) => [...y!.data];
const ONE = () => ({ x: Tensor.from([1], [1]) });

describe("createRuntime on a GPU", () => {
  const folder = temporaryFolder();
  const before = { ...process.env };
  const runtimes: OwnRuntime[] = [];
  const states: string[] = [];
  const reports: DeviceReport[] = [];
  const make = (options: RuntimeOptions = {}) => {
    const onLoad = (label: string, state: string) => states.push(`${label} ${state}`);
    const onDevice = (report: DeviceReport) => reports.push(report);
    const runtime = createRuntime({ threads: 1, onLoad, onDevice, ...options });
    runtimes.push(runtime);
    return runtime;
  };

  beforeEach(async function () {
    Object.assign(process.env, softwareGpu(this), { LATENTKIT_CACHE_DIR: join(folder(), "cache") });
    // a trial of this device takes half a minute
    const child = new RuntimeProcess();
    const { version } = await child.ready;
    const circumstances = { provider: "webgpu", version, adapters: await child.adapters() } as const;
    const target = {
      attention: "plain",
      largestHead: 256,
      matMul: "transposed",
      convChannels: "fours",
      halfTypes: [],
    } as const;
    await new StoredVerdicts().set(circumstances, { isUsable: true, target, speed: 2 });
    child.kill();
    await child.ended;
  });

  afterEach(async () => {
    for (const runtime of runtimes.splice(0)) await runtime.close();
    for (const list of [states, reports]) list.splice(0);
    for (const name of Object.keys(process.env)) if (!Object.hasOwn(before, name)) delete process.env[name];
    Object.assign(process.env, before);
  });

  it("runs on one that an earlier trial has found good, if none is named", async () => {
    const runtime = make();
    assert.deepEqual(values(await runtime.run(plusOneSource(), ONE())), [2]);
    const { provider, adapter, form } = runtime.describe().device!;
    assert.deepEqual([provider, form], ["webgpu", "plain"]);
    assert.match(adapter!, /SwiftShader|llvmpipe/);
    assert.deepEqual(reports, [{ provider, adapter, form, reason: undefined }]);
    assert.equal(runtime.describe().networks[0]!.plan, "fold");
    const cpu = make({ plan: "stream" });
    await cpu.run(plusOneSource(), ONE());
    assert.deepEqual(cpu.describe().device, { provider: "cpu", form: "tiles" });
  });

  it("refuses the CPU's plan there, and F16 weights if it has no floats of 16 bits", async () => {
    for (const plan of ["stream", "keep"] as const) {
      const run = make({ device: "webgpu", plan }).run(plusOneSource(), ONE());
      await refuses(run, "usage.invalid", new RegExp(`^plan: expected fold on webgpu, received "${plan}"\\.$`));
    }
  });

  it("passes values from network to network", async () => {
    const stages = [1, 2].map((x) => ({ source: stageSource(), feeds: { x: Tensor.from([x], [1]) } }));
    const runtime = make({ device: "webgpu" });
    for (let i = 0; i < 3; i++)
      assert.deepEqual(values(await runtime.run(productSource(), { x: Tensor.from([5], [1]) }, { stages })), [30]);
    // its outputs stay on the GPU, if nothing reads them
    await refuses(runtime.run(stageSource(), ONE()), "runtime.failed", /output "y" stays on the device/);
  });

  it("tries what fails once more, alone, and remembers how much was too much", async () => {
    const runtime = make({ device: "webgpu" });
    await runtime.run(plusOneSource("first"), ONE());
    assert.deepEqual(values(await runtime.run(failing(1), ONE())), [2]);
    assert.deepEqual(states.slice(2), ["fails loading", "first released", "fails loading", "fails loaded"]);
    // both together were too many
    await runtime.run(plusOneSource("first"), ONE());
    assert.deepEqual(states.slice(6), ["fails released", "first loading", "first loaded"]);
  });

  it("says after the second time what takes how much, and goes on", async () => {
    const runtime = make({ device: "webgpu" });
    await refuses(
      runtime.run(failing(2), ONE()),
      "runtime.failed",
      /^fails, while it was loaded: .* The retry failed too, with nothing else on the GPU; the weights take 0\.0 GiB there\. /,
    );
    assert.deepEqual(values(await runtime.run(plusOneSource(), ONE())), [2]);
  });

  it("ends a run whose driver crashes with device.lost, and starts anew", async () => {
    const runtime = make({ device: "webgpu" });
    await refuses(
      interrupted(runtime, "SIGSEGV"),
      "device.lost",
      /^The GPU was lost \(webgpu\)\. slow, while it ran: /,
    );
    assert.deepEqual(values(await runtime.run(plusOneSource(), ONE())), [2]);
  });

  it("stops an abandoned trial of a GPU, and leaves neither process nor verdict", async function () {
    process.env.LATENTKIT_CACHE_DIR = join(folder(), "another cache");
    const runtime = make({ device: "webgpu" });
    const duringTrial = async (signal?: AbortSignal) => {
      const run = runtime.run(plusOneSource(), ONE(), { signal });
      // its rejection is awaited below
      run.catch(() => {});
      const seen = new Set<number>();
      // the first process lists the GPUs
      while (seen.size < 2) {
        for (const id of runtimeProcesses(this)) seen.add(id);
        await sleep(5);
      }
      await sleep(300);
      return { run };
    };
    const closed = await duringTrial();
    await runtime.close();
    assert.deepEqual(runtimeProcesses(this), []);
    await refuses(closed.run, "run.interrupted");
    const abort = new AbortController();
    const aborted = await duringTrial(abort.signal);
    abort.abort();
    await rejectsAs(abort.signal, aborted.run);
    while (runtimeProcesses(this).length > 0) await sleep(5);
    assert.equal(await new StoredVerdicts().isEmpty(), true);
    assert.deepEqual([runtime.describe().device, reports], [undefined, []]);
  });

  it("leaves nothing behind when its process is killed ten times in a run @long", async () => {
    const runtime = make({ device: "webgpu" });
    for (let i = 0; i < 10; i++)
      await refuses(interrupted(runtime, "SIGKILL"), "runtime.failed", /^slow, while it ran: .*was killed/);
    assert.deepEqual(values(await runtime.run(plusOneSource(), ONE())), [2]);
    assert.deepEqual(
      runtime.describe().sessions.map(({ label }) => label),
      ["plus one"],
    );
  });

  /** A run whose process gets a signal in its middle. */
  async function interrupted(runtime: OwnRuntime, signal: NodeJS.Signals): Promise<void> {
    const loaded = states.length + 2;
    const run = runtime.run(slowSource(300), { x: slowInput() });
    // its rejection is awaited below
    run.catch(() => {});
    while (states.length < loaded) await sleep(10);
    await sleep(300);
    process.kill(runtime.describe().processId!, signal);
    await run;
  }
});

/** y = x + 1 by a graph that no runtime takes the first times. */
function failing(times: number): GraphSource {
  let made = 0;
  return {
    ...plusOneSource("fails"),
    make(plan) {
      if (++made > times) return plusOneSource().make(plan);
      const graph = new OnnxGraph("no such operator");
      graph.output(graph.node("Unheard", [graph.input("x", "float", ["n"])]), "y", "float", ["n"]);
      return graph.encode({ overridable: false });
    },
  };
}
