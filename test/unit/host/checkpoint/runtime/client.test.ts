import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { Tensor } from "latentkit";
import { createRuntime } from "#src/host/checkpoint/runtime/client.js";
import type { OwnRuntime as Runtime, RuntimeOptions } from "#src/host/checkpoint/session/runtime.js";
import { nativeFile } from "#src/native/load.js";
import { mainThreadMs } from "../../../../helpers/cpu-time.js";
import { refuses, rejectsAs } from "../../../../helpers/errors.js";
import { root, temporaryFolder } from "../../../../helpers/folders.js";
import {
  linearSource,
  plusOneSource,
  productSource,
  ROW,
  slowInput,
  slowSource,
  stageSource,
  untilBusy,
} from "../../../../helpers/models/runtime-graphs.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";
import { skip } from "../../../../helpers/skip.js";

const MIB = 2 ** 20;
const values = ({ y }: Record<string, Tensor>) => [...y!.data];
/** Whether a process runs; one that has ended may stay listed until its parent asks how. */
const isAlive = (id: number) => {
  try {
    process.kill(id, 0);
    return process.platform !== "linux" || !/\) [ZX] /.test(readFileSync(`/proc/${id}/stat`, "utf8"));
  } catch {
    return false;
  }
};

describe("createRuntime", () => {
  const folder = temporaryFolder();
  const runtimes: Runtime[] = [];
  const make = (options: RuntimeOptions = {}) => {
    const runtime = createRuntime({ threads: 1, ...options });
    runtimes.push(runtime);
    return runtime;
  };
  afterEach(async () => {
    for (const runtime of runtimes.splice(0)) await runtime.close();
  });

  /** A run of minutes that has begun. */
  async function longRun() {
    const abort = new AbortController();
    let isLoaded = false;
    const onLoad = (_: string, state: string) => {
      isLoaded = state === "loaded";
    };
    const runtime = make({ onLoad });
    const run = runtime.run(slowSource(3000), { x: slowInput() }, { signal: abort.signal });
    // its rejection is awaited by the test
    run.catch(() => {});
    while (!isLoaded) await sleep(10);
    await sleep(300);
    return { runtime, abort, run };
  }

  it("starts nothing before the first run", () => {
    assert.deepEqual(make().describe(), {
      version: undefined,
      device: undefined,
      threads: 1,
      processId: undefined,
      sessions: [],
      networks: [],
    });
  });

  it("runs networks in a row whose values pass from one to the next", async () => {
    const states: string[] = [];
    const runtime = make({ onLoad: (label, state) => states.push(`${label} ${state}`) });
    const stages = [1, 2].map((x) => ({ source: stageSource(), feeds: { x: Tensor.from([x, 10], [2]) } }));
    const run = () => runtime.call(productSource(), { x: Tensor.from([5, 7], [2]) }, { stages });
    const { outputs, networks } = await run();
    assert.deepEqual(values(outputs), [2 * 3 * 5, 11 * 11 * 7]);
    assert.deepEqual(values((await run()).outputs), [30, 847]);
    assert.deepEqual(
      networks.map(({ label }) => label),
      ["stage", "stage", "product"],
    );
    assert.deepEqual(states, ["stage loading", "stage loaded", "product loading", "product loaded"]);
    const missing = runtime.run(productSource(), { x: ROW() }, { stages: stages.slice(1) });
    await refuses(missing, "runtime.failed", /^product, while it ran: .*y\.1/);
  });

  it("keeps the networks of one call loaded, however little memory there is", async () => {
    const states: string[] = [];
    const runtime = make({ memory: 0, onLoad: (label, state) => states.push(`${label} ${state}`) });
    const stages = [1, 2].map((x) => ({ source: stageSource(), feeds: { x: Tensor.from([x], [1]) } }));
    const outputs = await runtime.run(productSource(), { x: Tensor.from([5], [1]) }, { stages });
    assert.deepEqual(values(outputs), [30]);
    await runtime.run(plusOneSource(), { x: Tensor.from([5], [1]) });
    assert.deepEqual(
      states.slice(4),
      ["plus one loading", "plus one loaded"].toSpliced(0, 0, "stage released", "product released"),
    );
  });

  it("refuses a run that takes more memory than there is, and does the next one", async () => {
    if (process.platform === "darwin") return;
    const states: string[] = [];
    const runtime = make({ onLoad: (label, state) => states.push(`${label} ${state}`) });
    const source = { ...plusOneSource(), work: { x: 1e13 } };
    const run = (side: number) => runtime.run(source, { x: Tensor.zeros([side]) });
    const wanted = /^plus one needs 20000\.1 GB of memory, but only \d+\.\d GB is free: use a smaller picture/;
    await refuses(run(2), "memory.missing", wanted);
    assert.deepEqual(states, []);
    assert.deepEqual(values(await run(0)), []);
    // the larger run of a loaded network
    await refuses(run(2), "memory.missing", /needs 20000\.0 GB/);
    assert.deepEqual(values(await run(0)), []);
    assert.deepEqual(states, ["plus one loading", "plus one loaded"]);
  });

  it("tells estimates of what it loads, and a call what it loads alone", async () => {
    const told: unknown[] = [];
    const runtime = make({ onLoad: (...report) => told.push(report) });
    const own: unknown[] = [];
    const source = { ...plusOneSource(), work: { x: 1000 }, parameters: 1000 };
    await runtime.run(source, { x: Tensor.zeros([3]) }, { onLoad: (...report) => own.push(report) });
    await runtime.run(plusOneSource("b"), { x: Tensor.zeros([3]) });
    const [label, state, memory] = told[0] as [string, string, { bytes: number; free: number }];
    assert.deepEqual([label, state], ["plus one", "loading"]);
    const { bytes, free, ...others } = memory;
    assert.deepEqual(others, { work: 3000, pages: 0 });
    assert.ok(bytes > 4000 && bytes < 5000 && free > 0);
    assert.deepEqual(told.slice(0, 2), own);
    assert.equal(told.length, 4);
  });

  it("starts its process before the first run where it is told to, once", async () => {
    const runtime = make();
    runtime.start();
    runtime.start();
    while (runtime.describe().version === undefined) await sleep(5);
    const { processId } = runtime.describe();
    assert.deepEqual(values(await runtime.run(plusOneSource(), { x: Tensor.from([1], [1]) })), [2]);
    assert.equal(runtime.describe().processId, processId);
  });

  it("tells the inputs and outputs of a network, which it loads once", async () => {
    const states: string[] = [];
    const runtime = make({ onLoad: (_, state) => states.push(state) });
    const source = plusOneSource();
    assert.deepEqual(await runtime.ports(source), {
      inputs: [{ name: "x", type: "float32", shape: ["n"] }],
      outputs: [{ name: "y", type: "float32", shape: ["n"] }],
    });
    assert.deepEqual(values(await runtime.run(source, { x: Tensor.from([2], [1]) })), [3]);
    assert.deepEqual(states, ["loading", "loaded"]);
  });

  for (const plan of ["stream", "fold"] as const) {
    it(`runs a network with the plan ${plan}, loaded once`, async () => {
      const states: string[] = [];
      const runtime = make({ plan, onLoad: (label, state) => states.push(`${label} ${state}`) });
      const source = await linearSource(folder());
      for (let i = 0; i < 3; i++) assert.deepEqual(values(await runtime.run(source, { x: ROW() })), [6, 15]);
      assert.deepEqual(states, ["linear loading", "linear loaded"]);
      const { version, sessions, networks } = runtime.describe();
      assert.match(version!, /^\d+\.\d+\.\d+$/);
      assert.deepEqual(
        sessions.map((session) => [session.label, session.plan]),
        [["linear", plan]],
      );
      assert.deepEqual(networks, [{ key: source.key, label: "linear", plan, files: [] }]);
      await runtime.close();
      assert.equal(runtime.describe().networks.length, 1, "a picture is saved after its networks have gone");
    });
  }

  it("carries large tensors and empty ones", async () => {
    const runtime = make();
    for (const size of [0, 1, 65_536, 65_537, 1_000_003]) {
      const x = Tensor.from(
        Float32Array.from({ length: size }, (_, i) => i % 1000),
        [size],
      );
      const { y } = await runtime.run(plusOneSource(), { x });
      assert.deepEqual(y!.shape, [size]);
      assert.ok(y!.data.every((value, i) => value === (i % 1000) + 1));
    }
  });

  it("sends a kept input once", async () => {
    const runtime = make();
    const x = Tensor.from([1, 2], [2]);
    const run = (keep: readonly string[]) => runtime.run(plusOneSource(), { x }, { keep });
    assert.deepEqual(values(await run(["x"])), [2, 3]);
    // against the contract, so as to see whether it is sent again
    x.data[0] = 5;
    assert.deepEqual(values(await run(["x"])), [2, 3]);
    assert.deepEqual(values(await run([])), [6, 3]);
  });

  it("runs one call after the other, in order", async () => {
    const runtime = make();
    const order: number[] = [];
    const calls = [1, 2, 3, 4].map((value) =>
      runtime.run(plusOneSource(), { x: Tensor.from([value], [1]) }).then((result) => order.push(...values(result))),
    );
    await Promise.all(calls);
    assert.deepEqual(order, [2, 3, 4, 5]);
  });

  it("releases the least recently used network if the budget is spent", async () => {
    const states: string[] = [];
    const runtime = make({ memory: 300 * MIB, onLoad: (label, state) => states.push(`${label} ${state}`) });
    const source = (key: string) => ({ ...plusOneSource(key), parameters: 26 * MIB, fileBytes: 52 * MIB });
    for (const key of ["a", "b", "a", "c", "b"])
      await runtime.run(source(key), { x: Tensor.from([1], [1]) }, { calls: 20 });
    assert.deepEqual(
      states.filter((text) => !text.endsWith("loading")),
      ["a loaded", "b loaded", "b released", "c loaded", "a released", "b loaded"],
    );
  });

  it("streams a network that does not fit folded", async () => {
    const runtime = make({ memory: 10 * MIB });
    const source = { ...(await linearSource(folder())), parameters: 100 * MIB, fileBytes: 200 * MIB };
    await runtime.run(source, { x: ROW() }, { calls: 20 });
    await runtime.run(source, { x: ROW() }, { calls: 20 });
    assert.deepEqual(
      runtime.describe().sessions.map(({ plan }) => plan),
      ["stream"],
    );
  });

  it("looks at a source's files before it is loaded, and before each streamed run", async () => {
    const source = await linearSource(folder());
    const path = join(folder(), "linear.safetensors");
    const states = [await weightFile(path)];
    const [fold, stream] = [make({ plan: "fold" }), make({ plan: "stream" })];
    for (const runtime of [fold, stream]) await runtime.run({ ...source, states }, { x: ROW() });
    utimesSync(path, 1000, 1000);
    assert.deepEqual(values(await fold.run({ ...source, states }, { x: ROW() })), [6, 15]);
    await refuses(stream.run({ ...source, states }, { x: ROW() }), "model.invalid", /has changed/);
    await refuses(make().run({ ...source, states }, { x: ROW() }), "model.invalid", /has changed/);
  });

  it("names the network in the error of a model that ONNX Runtime refuses, and goes on", async () => {
    const runtime = make();
    const broken = {
      ...plusOneSource("UNet of a.safetensors"),
      make: () => ({ bytes: Uint8Array.of(1, 2), folder: "", files: [] }),
    };
    await refuses(runtime.run(broken, {}), "runtime.failed", /^UNet of a\.safetensors, while it was loaded: .*\.$/);
    await refuses(runtime.run(plusOneSource(), {}), "runtime.failed", /^plus one, while it ran: .*x/);
    await refuses(runtime.run(plusOneSource(), { z: ROW() }), "runtime.failed", /no input "z", only x/);
    assert.deepEqual(values(await runtime.run(plusOneSource(), { x: Tensor.from([1], [1]) })), [2]);
  });

  it("rejects an aborted run at once, and leaves the process alone while no run waits for it @alone @long", async () => {
    const { runtime, abort, run } = await longRun();
    const { processId } = runtime.describe();
    const start = performance.now();
    abort.abort();
    await rejectsAs(abort.signal, run);
    assert.ok(performance.now() - start < 500);
    await sleep(1500);
    assert.equal(isAlive(processId!), true);
    assert.equal(runtime.describe().processId, processId);
  });

  it("kills the process if an aborted run keeps the next one waiting @alone @long", async () => {
    const { runtime, abort, run } = await longRun();
    const { processId } = runtime.describe();
    const start = performance.now();
    abort.abort();
    await rejectsAs(abort.signal, run);
    assert.deepEqual(values(await runtime.run(plusOneSource(), { x: Tensor.from([1], [1]) })), [2]);
    assert.ok(performance.now() - start > 900);
    assert.notEqual(runtime.describe().processId, processId);
    assert.equal(isAlive(processId!), false);
  });

  it("fails the run in which the process is killed, and the next one works", async () => {
    let isLoaded = false;
    const runtime = make({
      onLoad: (_label, state) => {
        isLoaded = state === "loaded";
      },
    });
    for (const isStarting of [true, false]) {
      isLoaded = false;
      const run = runtime.run(slowSource(6000), { x: slowInput() });
      const failure = refuses(run, "runtime.failed", /SIGKILL.*memory/);
      while (runtime.describe().processId === undefined || !(isStarting || isLoaded)) await sleep(1);
      if (!isStarting) await untilBusy(runtime.describe().processId!);
      process.kill(runtime.describe().processId!, "SIGKILL");
      await failure;
      assert.deepEqual(values(await runtime.run(plusOneSource(), { x: Tensor.from([1], [1]) })), [2]);
    }
  });

  it("starts anew if the process was killed between two runs", async () => {
    const runtime = make();
    const x = Tensor.from([1], [1]);
    const run = () => runtime.run(plusOneSource(), { x }, { keep: ["x"] });
    assert.deepEqual(values(await run()), [2]);
    process.kill(runtime.describe().processId!, "SIGKILL");
    assert.deepEqual(values(await run()), [2]);
    process.kill(runtime.describe().processId!, "SIGKILL");
    await sleep(200);
    assert.deepEqual(values(await run()), [2]);
  });

  it("interrupts all runs when it is closed, and starts anew after it", async () => {
    const runtime = make();
    const runs = [slowSource(3000), plusOneSource()].map((source) => runtime.run(source, { x: slowInput() }));
    const failures = runs.map((run) => refuses(run, "run.interrupted"));
    while (runtime.describe().processId === undefined) await sleep(10);
    await sleep(500);
    const { processId } = runtime.describe();
    await runtime.close();
    await Promise.all(failures);
    assert.equal(isAlive(processId!), false);
    assert.deepEqual(values(await runtime.run(plusOneSource(), { x: Tensor.from([1], [1]) })), [2]);
  });

  it("refuses wrong options", async () => {
    for (const options of [{ threads: 0 }, { memory: -1 }, { device: "tpu" }, { plan: "all" }, { thread: 1 }])
      await refuses(() => createRuntime(options as never), "usage.invalid");
  });

  it("ends with a program that does not close it", async () => {
    const { code, processId } = await program(folder(), `console.log((await run(plusOne)).processId);`);
    assert.equal(code, 0);
    while (isAlive(processId)) await sleep(10);
  });

  it("is closed by a program that has nothing else to do", async () => {
    const { code, text } = await program(
      folder(),
      `await run(plusOne);
      await runtime.close();
      console.log("closed", runtime.describe().processId);`,
    );
    assert.deepEqual([code, text], [0, "closed undefined\n"]);
  });

  if (process.platform === "linux")
    it("ends in the middle of a run when its parent is killed", async () => {
      const { signal, processId } = await program(
        folder(),
        `console.log((await run(plusOne)).processId);
        setTimeout(() => process.kill(process.pid, "SIGKILL"), 700);
        await run(slow);`,
      );
      assert.equal(signal, "SIGKILL");
      while (isAlive(processId)) await sleep(10);
    });

  it("tells how to install onnxruntime-node where it is missing", async () => {
    cpSync(join(root, "dist"), join(folder(), "dist"), { recursive: true });
    cpSync(join(root, "package.json"), join(folder(), "package.json"));
    const { text } = await program(
      folder(),
      `process.env.LATENTKIT_NATIVE = ${JSON.stringify(nativeFile())};
      await run(plusOne).catch(({ code, message }) => console.log(code, message));`,
      folder(),
    );
    assert.match(text, /^runtime\.missing .*npm install onnxruntime-node/);
  });

  it("leaves the event loop free while large tensors travel @alone", async function () {
    if (mainThreadMs() === undefined) skip(this, "processor time of a thread is read on Linux");
    const runtime = make();
    const picture = Tensor.zeros([1024 * 1024 * 3]);
    await runtime.run(plusOneSource(), { x: picture });
    const turns: number[] = [];
    let isOver = false;
    // work of this thread alone: neither the collector's threads nor what else the machine does is in it
    let last = mainThreadMs()!;
    const turn = () => {
      const now = mainThreadMs()!;
      turns.push(now - last);
      last = now;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    for (let i = 0; i < 10; i++) await runtime.run(plusOneSource(), { x: picture });
    isOver = true;
    // turns without work are many
    const busy = turns.filter((ms) => ms > 0.1).sort((a, b) => a - b);
    const p99 = busy[Math.floor(busy.length * 0.99)]!;
    // a tensor sent or taken in one piece is a twentieth of the work of ten calls
    const all = busy.reduce((sum, ms) => sum + ms, 0);
    assert.ok(p99 < all / 20, `p99 ${p99} ms of ${busy.length} turns, ${all} ms`);
  });
});

/** Runs a program with the sources and a `run` that returns the runtime's state; its first output is a process id. */
async function program(folder: string, body: string, checkout = root) {
  const at = (path: string) => JSON.stringify(pathToFileURL(path).href);
  const file = join(folder, "program.mjs");
  writeFileSync(
    file,
    `import { createRuntime } from ${at(join(checkout, "dist/host/checkpoint/runtime/client.js"))};
    import { Tensor } from ${at(join(checkout, "dist/tensor/tensor.js"))};
    import { plusOneSource, slowSource } from ${at(join(root, "build/test/helpers/models/runtime-graphs.js"))};
    const runtime = createRuntime({ threads: 1 });
    const x = Tensor.full([1024, 1024], 1 / 1024);
    const plusOne = [plusOneSource(), Tensor.zeros([1])];
    const slow = [slowSource(3000), x];
    const run = async ([source, x]) => {
      await runtime.run(source, { x });
      return runtime.describe();
    };
    ${body}`,
  );
  const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal, text, processId: Number.parseInt(text, 10) };
}
