import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { decodePng, LatentkitError, render } from "latentkit";
import type { RunEvent } from "#src/graph/events.js";
import { parseJson } from "#src/io/json/lossless.js";
import { createThreadPool, type ThreadPool, type ThreadPoolOptions } from "#src/render/threads/thread-pool.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, hashesIn, root, temporaryFolder } from "../../../helpers/folders.js";

const inputDir = join(root, "test/graphs/input");
const library = JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href);

/** Nodes that misbehave in every way a node can. */
const NODES = `
  import { createPreviewHost, createRegistry, defineNode, encodePng, image, int, registry, Tensor, text } from ${library};
  const node = (key, run, inputs = {}, more = {}) =>
    defineNode({ key, inputs, outputs: { value: "INT" }, outputNode: true, notIdempotent: true, run, ...more });
  let calls = 0;
  export let setups = 0;
  const nodes = [
    node("sleeps", async ({ ms }, { signal }) => {
      await new Promise((resolve) => { setTimeout(resolve, ms); signal.addEventListener("abort", resolve); });
      return { value: ms };
    }, { ms: int({ default: 0, max: 100_000 }) }),
    node("spins", (_, context) => { context.progress(1, 2); for (;;); }),
    node("waits for ever", () => new Promise(() => {})),
    node("encodes", async () => {
      const pixels = { data: new Uint8Array(1500 * 1500 * 3).map((_, i) => (i * i) >> 7), width: 1500, height: 1500, channels: 3 };
      for (;;) await Promise.all([1, 2, 3].map(() => encodePng(pixels, { level: 9 })));
    }),
    node("rejects unheard", async () => { void Promise.reject(new Error("nobody listens")); await new Promise(() => {}); }),
    node("throws later", async () => { setTimeout(() => { throw new Error("from a timer"); }); await new Promise(() => {}); }),
    node("exits", () => { process.exit(5); }),
    node("eats memory", () => { const all = []; for (;;) all.push(new Array(1e5).fill({})); }),
    node("throws", () => { throw new TypeError("no such thing"); }),
    node("talks", (_, { progress }) => { for (let i = 1; i <= 100_000; i++) progress(i, 100_000, new Tensor.constructor("return 0")); return { value: 1 }; }),
    defineNode({ key: "counts", inputs: { word: text() }, outputs: { value: "INT", what: "FUNCTION" },
      run: () => ({ value: ++calls, what: () => calls }) }),
    defineNode({ key: "shows", inputs: { value: int({ max: 1e6 }) }, outputs: { value: "INT" }, outputNode: true,
      run: ({ value }) => ({ result: [value], ui: { text: [String(value)], odd: [() => 1, new Map(), 5n] } }) }),
    defineNode({ key: "names the host", inputs: { turn: int() }, outputs: { name: "STRING" }, outputNode: true, notIdempotent: true,
      run: (_, { host }) => ({ name: host.checkpoints().at(-1) + ++host.uses }) }),
  ];
  export default () => ({ registry: createRegistry(nodes, registry),
    host: { ...createPreviewHost({ checkpoints: { "mine.safetensors": "sdxl" } }), uses: 0 } });
`;

const one = (class_type: string, inputs: object = {}) => ({ "1": { class_type, inputs } });
const picture = (prefix = "a") => ({
  "1": { class_type: "LoadImage", inputs: { image: "lake.png" } },
  "2": { class_type: "ext saveImageLazy", inputs: { images: ["1", 0], filename_prefix: prefix, save_metadata: true } },
});

describe("createThreadPool", () => {
  const folder = temporaryFolder();
  let pools: ThreadPool[] = [];
  const open = (options: ThreadPoolOptions = {}) => {
    const pool = createThreadPool(options);
    pools.push(pool);
    return pool;
  };
  const write = (name: string, text: string) => {
    writeFileSync(join(folder(), name), text);
    return pathToFileURL(join(folder(), name));
  };
  const openOdd = (options: ThreadPoolOptions = {}) =>
    open({ threads: 1, graceMs: 100, setup: write("setup.mjs", NODES), ...options });
  const out = (name = "out") => join(folder(), name);
  afterEach(async () => {
    await Promise.all(pools.map((pool) => pool.close()));
    pools = [];
  });

  it("renders the same files as render(), and tells the same events, as plain data", async () => {
    const pool = open({ threads: 2 });
    const events: RunEvent[] = [];
    const onEvent = (event: RunEvent) => void events.push(event);
    const result = await pool.render(picture(), { outputDir: out(), inputDir }, { onEvent });
    const here = await render(picture(), { outputDir: out("here"), inputDir });
    assert.deepEqual(hashesIn(out()), hashesIn(out("here")));
    assert.equal(result.status, "success");
    assert.deepEqual(
      result.files.map(({ path }) => path),
      [join(out(), "a_00001.png")],
    );
    assert.deepEqual(result.ui, here.ui);
    assert.deepEqual(result.outputs, { "2": ["a tensor of shape [1, 64, 64, 3]"] });
    assert.deepEqual(Object.keys(result.nodeMs), ["1", "2"]);
    const types = ["run-start", "cached", "node-start", "node-done", "node-start", "node-done", "run-done"];
    assert.deepEqual(
      events.map(({ type }) => type),
      types,
    );
    structuredClone(events);
  });

  it("gives the same result without a listener to events", async () => {
    const pool = open({ threads: 1 });
    const heard = await pool.render(picture(), { outputDir: out(), inputDir }, { onEvent: () => {} });
    const quiet = await open({ threads: 1 }).render(picture("b"), { outputDir: out(), inputDir });
    assert.deepEqual(Object.keys(quiet.nodeMs), Object.keys(heard.nodeMs));
    assert.equal(quiet.files[0]!.path, join(out(), "b_00001.png"));
    assert.deepEqual(quiet.outputs, heard.outputs);
    assert.deepEqual(Object.keys(quiet.ui), ["2"]);
    const failed = await openOdd().render(one("throws"), { outputDir: out(), inputDir });
    assert.equal(failed.status, "failed");
    assert.ok(failed.error instanceof LatentkitError);
    assert.match(failed.error.message, /Node 1 \(throws\): no such thing/);
  });

  it("keeps every digit of graph, set and extraPnginfo on the way", async () => {
    const pool = open({ threads: 1 });
    const graph = parseJson(
      '{"10": {"class_type": "ext saveTextLazy", "inputs": {"text": "{{n}}", "output_file_path": "t", "file_name": "n", "file_extension": "txt", "overwrite": true, "x": 7.0}}, "2": {"class_type": "LoadImage", "inputs": {"image": "lake.png"}}, "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0], "filename_prefix": "p"}}}',
    ) as object;
    const set = { n: 18446744073709551615n };
    const extraPnginfo = { note: parseJson("[1e-07, 0.10]") };
    await pool.render(graph, { outputDir: out(), inputDir, set, extraPnginfo, targets: ["10", "3"] });
    assert.equal(readFileSync(join(out(), "t/n.txt"), "utf8").trim(), "18446744073709551615");
    const { text } = await decodePng(readFileSync(join(out(), "p_00001_.png")));
    assert.match(text.prompt!, /^\{"10": .*18446744073709551615.*"x": 7\.0/);
    assert.equal(text.note, "[1e-07, 0.10]");
  });

  it("computes once for all runs of a thread what does not change, yet writes every run's files", async () => {
    const pool = openOdd();
    const graph = (word: string) => ({
      "1": { class_type: "counts", inputs: { word } },
      "2": { class_type: "shows", inputs: { value: ["1", 0] } },
      ...Object.fromEntries(Object.entries(picture("x")).map(([id, node]) => [`p${id}`, node])),
      p2: { class_type: "SaveImage", inputs: { images: ["p1", 0], filename_prefix: "x" } },
    });
    const values = [];
    for (const word of ["a", "a", "b", "a"]) {
      const { ui, files, outputs } = await pool.render(graph(word), { outputDir: out(), inputDir });
      values.push([(ui["2"] as { text: string[] }).text[0], files[0]!.filename]);
      assert.deepEqual(outputs["2"], [Number(values.at(-1)![0])]);
    }
    assert.deepEqual(values, [
      ["1", "x_00001_.png"],
      ["1", "x_00002_.png"],
      ["2", "x_00003_.png"],
      ["1", "x_00004_.png"],
    ]);
    assert.deepEqual(filesIn(out()), ["x_00001_.png", "x_00002_.png", "x_00003_.png", "x_00004_.png"]);
    // another folder does not make it compute anew
    const elsewhere = await pool.render(graph("a"), { outputDir: out("other"), inputDir });
    assert.deepEqual([elsewhere.ui["2"]?.text, filesIn(out("other"))], [["1"], ["x_00001_.png"]]);
  });

  it("opens a disk cache in each thread, which threads of other pools find full", async () => {
    const nodes = `
      import { createRegistry, defineNode, int, registry } from ${library};
      const slow = defineNode({ key: "slow", cacheVersion: "1", inputs: { n: int() }, outputs: { n: "INT" },
        run: async ({ n }) => { await new Promise((resolve) => setTimeout(resolve, 20)); return { n: n + 1 }; } });
      export default () => ({ registry: createRegistry([slow], registry) });
    `;
    const graph = {
      ...one("slow", { n: 4 }),
      "2": { class_type: "ext showAnythingLazy", inputs: { anything: ["1", 0] } },
    };
    const setup = write("slow.mjs", nodes);
    const cacheDir = join(folder(), "cache");
    const events: RunEvent[] = [];
    for (const expected of [[], ["1"]]) {
      const pool = open({ threads: 1, setup, cacheDir });
      events.length = 0;
      const { ui } = await pool.render(graph, { outputDir: out() }, { onEvent: (event) => void events.push(event) });
      assert.deepEqual(ui, { "2": { text: ["5"] } });
      assert.deepEqual(
        events.flatMap((event) => (event.type === "cached" ? event.nodeIds : [])),
        expected,
      );
      assert.equal(events.filter(({ type }) => type === "node-start").length, 2 - expected.length);
    }
    await refuses(() => createThreadPool({ cacheDir: "" }), "value.invalid", /Disk cache: expected a folder/);
  });

  it("calls the setup once for each thread", async () => {
    const pool = openOdd();
    const names = [];
    for (let i = 0; i < 3; i++) names.push((await pool.render(one("names the host", { turn: i }))).outputs["1"]![0]);
    assert.deepEqual(names, ["mine.safetensors1", "mine.safetensors2", "mine.safetensors3"]);
    assert.equal(pool.size, 1);
  });

  it("rejects wrong graphs and options before anything is written, with code and details", async () => {
    const pool = open({ threads: 1 });
    const run = (graph: string | object, options = {}) =>
      pool.render(graph, { outputDir: out(), inputDir, ...options });
    const unknown = await refuses(run(one("ext saveImageLasy")), "graph.unknown-class", /saveImageLazy/);
    assert.equal(unknown.details.suggestion, "ext saveImageLazy");
    await refuses(run(join(folder(), "none.json")), "file.not-found", /none\.json/);
    await refuses(run("{ not json"), "graph.invalid-json", /line 1/);
    await refuses(run(picture(), { set: { "2.filename_perfix": "x" } }), "usage.invalid", /filename_prefix/);
    await refuses(run(picture(), { config: { odd: () => 1 } }), "usage.invalid", /config, odd: .*received a function/);
    await refuses(() => createThreadPool({ threads: 0 }), "value.out-of-range", /1 to 256, received 0/);
    await refuses(() => createThreadPool({ threads: 1.5 }), "value.out-of-range", /1\.5/);
    assert.equal(existsSync(out()), false);
    assert.equal((await run(picture())).status, "success");
    assert.equal(pool.size, 1);
  });

  it("tells a node's failure as render() does", async () => {
    const { status, error } = await openOdd().render(one("throws"));
    assert.equal(status, "failed");
    assert.ok(error instanceof LatentkitError);
    assert.deepEqual([error.code, error.details.nodeId, error.details.node], ["node.failed", "1", "throws"]);
    assert.match(error.message, /^Node 1 \(throws\).*no such thing/);
  });

  for (const [node, pattern] of [
    ["rejects unheard", /Node 1: the rendering thread ended \(uncaught error: nobody listens\)/],
    ["throws later", /uncaught error: from a timer/],
    ["exits", /process\.exit\(5\) was called/],
    ["eats memory", /memory/],
  ] as const) {
    it(`a node that ${node} fails its own run alone`, async () => {
      const pool = openOdd({ threads: 2, resourceLimits: { maxOldGenerationSizeMb: 48 } });
      const other = pool.render(one("sleeps", { ms: 1500 }));
      const lost = await pool.render(one(node));
      assert.deepEqual([lost.status, lost.error?.code], ["failed", "thread.lost"]);
      assert.match(lost.error!.message, pattern);
      assert.deepEqual((await pool.render(one("sleeps", { ms: 1 }))).outputs, { "1": [1] });
      assert.deepEqual((await other).outputs, { "1": [1500] });
    });
  }

  it("rejects a run whose files cannot be sent, and is as idle as before", async () => {
    const pool = openOdd({ graceMs: 100_000 });
    const moved = new Uint8Array(8);
    structuredClone(moved, { transfer: [moved.buffer] });
    await assert.rejects(pool.render(one("sleeps"), { files: { a: moved } }), /detached/);
    assert.equal((await pool.render(one("sleeps"))).status, "success");
    // waits for the grace period if a thread counts as busy
    await pool.close();
  });

  it("rejects with what the setup says, and tries it again in a new thread @long", async () => {
    const run = (name: string, text: string) => open({ threads: 1, setup: write(name, text) }).render(one("throws"));
    await refuses(
      run("a.mjs", "export default () => { throw new Error('no model'); }"),
      "setup.failed",
      /a\.mjs: no model/,
    );
    await refuses(run("b.mjs", "export default 5;"), "setup.failed", /expected a function as its default export/);
    await refuses(run("c.mjs", "syntax error"), "setup.failed", /c\.mjs/);
    const misspelt = run("e.mjs", "export default () => ({ regsitry: 5, hosts: 5 });");
    await refuses(misspelt, "setup.failed", /e\.mjs: its result: unknown option "regsitry"/);
    const missing = open({ setup: pathToFileURL(join(folder(), "none.mjs")) });
    await refuses(missing.render(one("throws")), "setup.failed", /none\.mjs/);
    const exits = await run("d.mjs", "process.exit(3);");
    assert.deepEqual([exits.status, exits.error?.code], ["failed", "thread.lost"]);
    const once = join(folder(), "once");
    const pool = open({
      threads: 1,
      setup: write(
        "e.mjs",
        `import { existsSync, writeFileSync } from "node:fs"; import { registry } from ${library};
         if (!existsSync(${JSON.stringify(once)})) { writeFileSync(${JSON.stringify(once)}, ""); throw new Error("not yet"); }
         export default () => ({ registry });`,
      ),
    });
    await refuses(pool.render(picture()), "setup.failed", /not yet/);
    assert.equal((await pool.render(picture(), { outputDir: out(), inputDir })).status, "success");
  });

  it("stops a run by its signal: a node that listens keeps the thread, one that does not loses it", async () => {
    const pool = openOdd();
    const abortAfter = async (node: string, inputs = {}) => {
      const controller = new AbortController();
      const onEvent = ({ type }: RunEvent) => {
        if (type === "node-start") setTimeout(() => controller.abort(), 30);
      };
      const { status } = await pool.render(one(node, inputs), {}, { signal: controller.signal, onEvent });
      assert.equal(status, "interrupted");
    };
    await abortAfter("sleeps", { ms: 100_000 });
    assert.equal(pool.size, 1);
    for (const node of ["spins", "waits for ever"]) {
      await abortAfter(node);
      assert.equal(pool.size, 0);
      assert.equal((await pool.render(one("sleeps", { ms: 1 }))).status, "success");
    }
    const aborted = await pool.render(one("exits"), {}, { signal: AbortSignal.abort() });
    assert.deepEqual([aborted.status, aborted.files], ["interrupted", []]);
  });

  it("survives the end of threads in the middle of PNG encoding @long", async () => {
    const pool = openOdd({ threads: 2, graceMs: 1 });
    for (let k = 0; k < 6; k++) {
      const { status } = await pool.render(one("encodes"), {}, { signal: AbortSignal.timeout(400 + 37 * k) });
      assert.equal(status, "interrupted");
    }
    assert.equal((await pool.render(picture(), { outputDir: out(), inputDir })).status, "success");
  });

  it("runs as many at once as it has threads", async () => {
    const pool = openOdd({ threads: 2 });
    let running = 0;
    let most = 0;
    const onEvent = ({ type }: RunEvent) => {
      if (type === "run-start") running++;
      if (type === "run-done") running--;
      most = Math.max(most, running);
    };
    // the second thread may start after the first has run all
    await Promise.all([1, 2].map((ms) => pool.render(one("sleeps", { ms }))));
    await Promise.all([1, 2, 3, 4, 5, 6].map((ms) => pool.render(one("sleeps", { ms: 100 + ms }), {}, { onEvent })));
    assert.deepEqual([most, pool.size], [2, 2]);
  });

  it("runs those that wait in order, and leaves out the aborted", async () => {
    const pool = openOdd();
    const order: number[] = [];
    const controller = new AbortController();
    const start = (ms: number) =>
      pool.render(
        one("sleeps", { ms }),
        {},
        {
          signal: ms === 4 ? controller.signal : undefined,
          onEvent: ({ type }) => void (type === "run-start" && order.push(ms)),
        },
      );
    const first = start(1);
    const others = [2, 3, 4, 5].map(start);
    // one that comes in the moment a thread is free still waits for its turn
    const last = first.then(() => start(6));
    controller.abort();
    assert.equal((await others[2])!.status, "interrupted");
    await Promise.all([...others, last]);
    assert.deepEqual(order, [1, 2, 3, 5, 6]);
  });

  it("passes on few of very many progress events, the last one always", async () => {
    const seen: number[] = [];
    await openOdd().render(
      one("talks"),
      {},
      {
        onEvent: (event) => {
          if (event.type === "progress") seen.push(event.value);
          assert.equal("preview" in event && event.preview !== undefined, false);
        },
      },
    );
    assert.equal(seen.at(-1), 100_000);
    assert.ok(seen.length < 1000, `${seen.length} events`);
  });

  it("a listener that throws fails its run alone", async () => {
    const pool = openOdd();
    const onEvent = () => {
      throw new Error("cannot listen");
    };
    await assert.rejects(pool.render(one("sleeps", { ms: 1 }), {}, { onEvent }), /cannot listen/);
    assert.equal((await pool.render(one("sleeps", { ms: 1 }))).status, "success");
  });

  it("close() interrupts what runs and waits, and refuses what follows", async () => {
    const pool = openOdd({ threads: 1 });
    const runs = [one("spins"), one("sleeps", { ms: 9 })].map((graph) => pool.render(graph));
    await sleep(300);
    await pool.close();
    const statuses = (await Promise.all(runs)).map(({ status }) => status);
    assert.deepEqual(statuses, ["interrupted", "interrupted"]);
    assert.equal((await pool.render(one("sleeps", { ms: 1 }))).status, "interrupted");
    assert.equal(pool.size, 0);
  });

  it("keeps the process alive while it renders, and no longer", () => {
    const url = JSON.stringify(pathToFileURL(join(root, "dist/render/threads/thread-pool.js")).href);
    const options = JSON.stringify({ outputDir: out(), inputDir });
    const program = `
      import { createThreadPool } from ${url};
      const pool = createThreadPool({ threads: 2 });
      void pool.render(${JSON.stringify(picture())}, ${options}).then(({ status }) => console.log(status, pool.size));
    `;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      encoding: "utf8",
      timeout: 120_000,
    });
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: "success 1\n", stderr: "" });
  });

  it("leaves each processor to one thread of the native core", () => {
    const url = (name: string) => JSON.stringify(pathToFileURL(join(root, "dist", name)).href);
    const program = `
      import { availableParallelism } from "node:os";
      import { createThreadPool } from ${url("render/threads/thread-pool.js")};
      import { device } from ${url("index.js")};
      const isLeft = (rendering) =>
        device().threads === (Number(process.env.LATENTKIT_THREADS) || Math.max(1, availableParallelism() - rendering + 1));
      const pool = createThreadPool({ threads: 2 });
      const told = [isLeft(2)];
      // a second pool takes from the same processors
      const other = createThreadPool({ threads: 1 });
      told.push(isLeft(3));
      await other.close();
      await other.close();
      told.push(isLeft(2));
      await pool.close();
      told.push(isLeft(1));
      console.log(told.join());
    `;
    for (const LATENTKIT_THREADS of ["", "5"]) {
      const env = { ...process.env, LATENTKIT_THREADS };
      const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", env });
      assert.equal(stdout, "true,true,true,true\n");
    }
  });
});
