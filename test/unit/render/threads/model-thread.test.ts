import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { batch, createRenderer, type RunEvent, render } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { ModelThread } from "#src/render/threads/model-thread.js";
import { createThreadPool, type ThreadPool, type ThreadPoolOptions } from "#src/render/threads/thread-pool.js";
import { refuses } from "../../../helpers/errors.js";
import { hashesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { tinyModels } from "../../../helpers/models/tiny-host.js";
import { skip } from "../../../helpers/skip.js";

const source = readFileSync(join(root, "test/graphs/sampling/text-to-image.json"), "utf8");
const graph = JSON.parse(source.replace("preview-sd15.safetensors", "tiny-sd1.safetensors")) as object;
const set = { "4.width": 64, "4.height": 64, "5.steps": 2 };
/** Steps that take a minute and more. */
const endless = { ...set, "5.steps": 10_000 };

/** Processes of ONNX Runtime that this process has started. */
const children = (): number[] => {
  const { stdout } = spawnSync("ps", ["-o", "pid=,stat=,args=", "--ppid", String(process.pid)], { encoding: "utf8" });
  const own = stdout.split("\n").filter((line) => line.includes("runtime/child.js") && !/^\s*\d+\s+Z/.test(line));
  return own.map((line) => Number.parseInt(line, 10));
};

describe("models of threads that render", () => {
  const folder = temporaryFolder();
  const out = (name: string) => join(folder(), name);
  const models = { folders: tinyModels(), threads: 1 };
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  const open = (options: ThreadPoolOptions = {}): { pool: ThreadPool; states: string[] } => {
    const states: string[] = [];
    const thread = new ModelThread(models, { onLoad: (label, state) => states.push(`${label} ${state}`) });
    const pool = createThreadPool({ threads: 2, models: thread, graceMs: 300, ...options });
    closers.push(
      () => thread.close(),
      () => pool.close(),
    );
    return { pool, states };
  };
  /** Files of a render with a host in this thread. */
  const expected = async (values: object = set) => {
    const host = createCheckpointHost({ models: models.folders, threads: models.threads });
    try {
      const { status } = await render(graph, { host, set: values as typeof set, outputDir: out("alone") });
      assert.equal(status, "success");
    } finally {
      await host.close();
    }
    return hashesIn(out("alone"));
  };

  it("render the same files as a host in the calling thread, with weights that are loaded once", async () => {
    const { pool, states } = open();
    const results = await Promise.all(["a", "b"].map((name) => pool.render(graph, { set, outputDir: out(name) })));
    assert.deepEqual(
      results.map(({ status, error }) => [status, error]),
      [
        ["success", undefined],
        ["success", undefined],
      ],
    );
    const files = await expected();
    for (const name of ["a", "b"]) assert.deepEqual(hashesIn(out(name)), files);
    const loads = states.filter((state) => state.endsWith(" loaded"));
    assert.deepEqual(loads.sort(), [
      "UNet of tiny-sd1.safetensors loaded",
      "VAE of tiny-sd1.safetensors loaded",
      "text encoder l of tiny-sd1.safetensors loaded",
    ]);
  });

  it("tell a run what is loaded for it, and no other one", async () => {
    const { pool } = open();
    const networks = async (name: string) => {
      const told: string[] = [];
      const onEvent = (event: RunEvent) => {
        if (event.type !== "network") return;
        told.push(`${event.network} ${event.state}`);
        assert.equal(event.memory !== undefined, event.state === "loading");
      };
      await pool.render(graph, { set, outputDir: out(name) }, { onEvent });
      return told;
    };
    const first = await networks("first");
    assert.deepEqual(
      first.filter((told) => told.startsWith("UNet")),
      ["UNet of tiny-sd1.safetensors loading", "UNet of tiny-sd1.safetensors loaded"],
    );
    assert.equal(first.length, 6);
    assert.deepEqual(await networks("second"), []);
  });

  it("render a batch to the files of a host in the calling thread", async () => {
    const items = [1, 2, 3, 4].map((seed) => ({ "5.seed": seed }));
    const run = async (outputDir: string, more: object) => {
      for await (const event of batch(graph, items, { set, outputDir, concurrency: 2, ...more }))
        assert.ok(event.type !== "item-failed", "an item failed");
      return hashesIn(outputDir);
    };
    const host = createCheckpointHost({ models: models.folders, threads: models.threads });
    closers.push(() => host.close());
    const files = await run(out("live"), { host });
    assert.equal(Object.keys(files).length, 4);
    assert.deepEqual(await run(out("threads"), { models }), files);
  });

  it("fail the run in which their process is killed, and other runs go on", async function () {
    if (process.platform === "win32") skip(this, "processes are listed by ps");
    const { pool, states } = open();
    const before = children();
    const values = { ...endless, "4.width": 256, "4.height": 256 };
    let isOver = false;
    const killed = pool.render(graph, { set: values, outputDir: out("killed") }).finally(() => {
      isOver = true;
    });
    while (!states.includes("UNet of tiny-sd1.safetensors loaded")) await sleep(5);
    // one that is killed between two calls fails none
    for (; !isOver; await sleep(50))
      for (const id of children().filter((id) => !before.includes(id))) process.kill(id, "SIGKILL");
    const { status, error } = await killed;
    assert.equal(status, "failed");
    assert.match(error!.message, /the process of ONNX Runtime was killed \(SIGKILL\)/);
    assert.equal(error!.code, "runtime.failed");
    const next = await pool.render(graph, { set, outputDir: out("next") });
    assert.deepEqual([next.status, next.error], ["success", undefined]);
    assert.deepEqual(hashesIn(out("next")), await expected());
  });

  it("go on with one run if another one that shares them is cancelled", async () => {
    const { pool, states } = open();
    const abort = new AbortController();
    const cancelled = pool.render(graph, { set: endless, outputDir: out("cancelled") }, { signal: abort.signal });
    while (!states.includes("UNet of tiny-sd1.safetensors loaded")) await sleep(5);
    const values = { ...set, "5.steps": 8 };
    const other = pool.render(graph, { set: values, outputDir: out("other") });
    await sleep(20);
    abort.abort();
    assert.equal((await cancelled).status, "interrupted");
    const { status, error } = await other;
    assert.deepEqual([status, error], ["success", undefined]);
    assert.deepEqual(hashesIn(out("other")), await expected(values));
  });

  it("serve no thread that is gone, and others go on", async () => {
    const nodes = `
      import { createRegistry, defineNode, registry } from ${JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href)};
      const spins = defineNode({ key: "spins", inputs: {}, outputs: {}, outputNode: true, run() { for (;;); } });
      export default () => ({ registry: createRegistry([spins], registry) });`;
    writeFileSync(join(folder(), "setup.mjs"), nodes);
    const { pool } = open({ setup: pathToFileURL(join(folder(), "setup.mjs")) });
    const abort = new AbortController();
    let isSpinning = false;
    // a sampling whose steps go on while the thread is ended
    const both = { ...graph, "20": { class_type: "spins", inputs: {} } };
    const spinning = pool.render(
      both,
      { set, outputDir: out("spins") },
      {
        signal: abort.signal,
        onEvent: (event) => {
          if (event.type === "node-start" && event.nodeId === "20") isSpinning = true;
        },
      },
    );
    const other = pool.render(graph, { set, outputDir: out("other") });
    while (!isSpinning) await sleep(5);
    abort.abort();
    assert.equal((await spinning).status, "interrupted");
    assert.equal((await other).status, "success");
    const next = await pool.render(graph, { set, outputDir: out("next") });
    assert.equal(next.status, "success");
    assert.deepEqual(hashesIn(out("next")), await expected());
  });

  it("start again for the next run if their thread has ended", async () => {
    const thread = new ModelThread(models);
    const pool = createThreadPool({ threads: 1, models: thread });
    closers.push(
      () => thread.close(),
      () => pool.close(),
    );
    for (const name of ["a", "b"]) {
      const { status, error } = await pool.render(graph, { set, outputDir: out(name) });
      assert.deepEqual([status, error], ["success", undefined]);
      await thread.close();
    }
    assert.deepEqual(hashesIn(out("b")), hashesIn(out("a")));
    const running = pool.render(graph, { set: endless, outputDir: out("lost") });
    await sleep(1000);
    await thread.close();
    const { status, error } = await running;
    assert.equal(status, "failed");
    assert.match(error!.message, /: The host was closed\.$|: The thread of ONNX Runtime has ended\.$/);
  });

  it("are refused beside a host of a setup module, and beside live objects of a batch", async () => {
    const setup = `import { createPreviewHost } from ${JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href)};
      export default () => ({ host: createPreviewHost() });`;
    writeFileSync(join(folder(), "setup.mjs"), setup);
    const renderer = createRenderer({ models, setup: pathToFileURL(join(folder(), "setup.mjs")) });
    closers.push(() => renderer.close());
    await refuses(renderer.render({ graph }), "setup.failed", /expected models or its host, received both\.$/);
    const live = batch(graph, [], { models, clock: () => new Date() });
    await refuses(live.next(), "usage.invalid", /^batch: expected models or clock, received both\.$/);
  });

  it("are refused if their folder or a setting is wrong, before anything starts", () => {
    const none = { folders: join(folder(), "none") };
    assert.throws(() => createRenderer({ models: none }), { code: "config.invalid" });
    assert.throws(() => createRenderer({ models: { ...models, plan: "all" as "fold" } }), { code: "usage.invalid" });
    assert.throws(() => createRenderer({ models: { threads: 1 } as never }), { code: "usage.invalid" });
  });

  it("end with a program that does not close them", async function () {
    if (process.platform !== "linux") skip(this, "a child ends with its thread on Linux");
    const program = `
      import { createRenderer } from ${JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href)};
      const renderer = createRenderer({ models: ${JSON.stringify(models)}, outputDir: ${JSON.stringify(out("program"))} });
      const { status } = await renderer.render({ graph: ${JSON.stringify(graph)}, set: ${JSON.stringify(set)} });
      console.log(status);`;
    const file = join(folder(), "program.mjs");
    writeFileSync(file, program);
    const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    // the pipe closes when no process has it open
    const [code] = (await once(child, "close")) as [number];
    assert.deepEqual([code, text], [0, "success\n"]);
    const isLeft = () =>
      spawnSync("ps", ["-eo", "args="], { encoding: "utf8" }).stdout.includes(`child.js ${child.pid}`);
    while (isLeft()) await sleep(10);
  });
});
