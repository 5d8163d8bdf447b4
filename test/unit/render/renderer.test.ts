import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { createRenderer, decodePng, executeGraph, type Renderer, type RendererOptions, render } from "latentkit";
import type { RunEvent } from "#src/graph/events.js";
import { mainThreadMs } from "../../helpers/cpu-time.js";
import { eventsUntil, refuses, rejectsAs } from "../../helpers/errors.js";
import { filesIn, hashesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { skip } from "../../helpers/skip.js";

const inputDir = join(root, "test/graphs/input");
const library = JSON.stringify(pathToFileURL(join(root, "dist/index.js")).href);

const NODES = `
  import { writeFileSync } from "node:fs";
  import { createRegistry, defineNode, int, registry } from ${library};
  const node = (key, run, inputs = {}) =>
    defineNode({ key, inputs, outputs: { value: "INT" }, outputNode: true, notIdempotent: true, run });
  export default () => ({ registry: createRegistry([
    node("waits", async ({ ms }, { signal }) => {
      await new Promise((resolve) => { setTimeout(resolve, ms); signal.addEventListener("abort", resolve); });
      return { value: ms };
    }, { ms: int({ default: 0, max: 100_000 }) }),
    node("spins", (_, context) => { for (;;); }),
    node("eats memory", () => { const all = []; for (;;) all.push(new Array(1e5).fill({})); }),
    node("throws", () => { throw new TypeError("no such thing"); }),
    node("counts", async (_, { progress }) => {
      for (let i = 1; i <= 12; i++) { progress(i, 12); await new Promise((resolve) => setTimeout(resolve, 45)); }
      writeFileSync(new URL("counted", import.meta.url), "");
      return { value: 12 };
    }),
  ], registry) });
`;

const one = (class_type: string, inputs: object = {}) => ({ "1": { class_type, inputs } });
const picture = {
  "1": { class_type: "LoadImage", inputs: { image: "{{name}}" } },
  "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "a" } },
};
const typesOf = (events: readonly RunEvent[]) => events.map(({ type }) => type);

describe("createRenderer", () => {
  const folder = temporaryFolder();
  let renderers: Renderer[] = [];
  const open = (options: RendererOptions = {}) => {
    const renderer = createRenderer(options);
    renderers.push(renderer);
    return renderer;
  };
  const openOdd = (options: RendererOptions = {}) => {
    writeFileSync(join(folder(), "setup.mjs"), NODES);
    return open({ threads: 1, graceMs: 100, setup: pathToFileURL(join(folder(), "setup.mjs")), ...options });
  };
  const collect = async (events: AsyncIterable<RunEvent>) => {
    const all: RunEvent[] = [];
    for await (const event of events) all.push(event);
    return all;
  };
  afterEach(async () => {
    await Promise.all(renderers.map((renderer) => renderer.close()));
    renderers = [];
  });

  it("renders the files and events of render() and executeGraph()", async () => {
    const [there, here] = [join(folder(), "there"), join(folder(), "here")];
    const renderer = open({ threads: 1, inputDir, set: { name: "sea.png" } });
    const set = { name: "lake.png" };
    const events = await collect(renderer.stream({ graph: picture, set, outputDir: there }));
    const own = await render(picture, { set, inputDir, outputDir: here });
    assert.deepEqual(hashesIn(there), hashesIn(here));
    const graph = JSON.parse(JSON.stringify(picture).replace("{{name}}", "lake.png")) as object;
    const expected = await collect(executeGraph(graph, { inputDir, outputDir: join(folder(), "third") }));
    assert.deepEqual(typesOf(events), typesOf(expected));
    const heard: RunEvent[] = [];
    const outputDir = join(folder(), "fourth");
    const result = await renderer.render({ graph: picture, set, outputDir, onEvent: (event) => heard.push(event) });
    assert.deepEqual([result.status, result.ui], ["success", own.ui]);
    assert.deepEqual(hashesIn(outputDir), hashesIn(here));
    assert.equal(typesOf(heard).at(-1), "run-done");
  });

  it("returns the result at the end of a stream", async () => {
    const stream = open({ threads: 1, inputDir }).stream({
      graph: picture,
      set: { name: "lake.png" },
      outputDir: folder(),
    });
    let next = await stream.next();
    while (!next.done) next = await stream.next();
    assert.equal(next.value.files[0]?.path, join(folder(), "a_00001_.png"));
  });

  it("reports a node's failure in the status, and rejects for a wrong graph", async () => {
    const renderer = openOdd();
    const failed = await renderer.render({ graph: one("throws") });
    const { name, message, stack } = failed.error!.cause as Error;
    assert.deepEqual([name, message], ["TypeError", "no such thing"]);
    assert.match(stack!, /setup[^/]*\.mjs:\d+:\d+/, "the place in the node");
    assert.deepEqual([failed.status, failed.error?.code], ["failed", "node.failed"]);
    await refuses(renderer.render({ graph: one("no such node") }), "graph.unknown-class");
    await refuses(collect(renderer.stream({ graph: one("no such node") })), "graph.unknown-class");
  });

  it("rejects the job of a thread that runs out of memory, and goes on with a new one", async () => {
    const renderer = openOdd({ resourceLimits: { maxOldGenerationSizeMb: 48 } });
    await refuses(renderer.render({ graph: one("eats memory") }), "thread.lost", /^Node 1: the rendering thread ended/);
    const events: RunEvent[] = [];
    const stream = async () => {
      for await (const event of renderer.stream({ graph: one("eats memory") })) events.push(event);
    };
    await refuses(stream, "thread.lost", /memory/);
    assert.equal(typesOf(events)[0], "run-start");
    const { outputs } = await renderer.render({ graph: one("waits", { ms: 1 }) });
    assert.deepEqual(outputs, { "1": [1] });
  });

  it("ends the stream of an aborted job with run-done, whether its node listens or not", async () => {
    const renderer = openOdd({ threads: 2 });
    for (const graph of [one("waits", { ms: 60_000 }), one("spins")]) {
      const signal = AbortSignal.timeout(400);
      const events = await eventsUntil(signal, renderer.stream({ graph, signal }));
      assert.deepEqual(typesOf(events).slice(-2), ["interrupted", "run-done"]);
      const last = events.at(-1)!;
      assert.equal(last.type === "run-done" && last.status, "interrupted");
    }
  });

  it("interrupts the job of a reader that leaves", async () => {
    const renderer = openOdd();
    for await (const { type } of renderer.stream({ graph: one("waits", { ms: 60_000 }) })) {
      if (type === "node-start") break;
    }
    // the only thread is free again
    assert.equal((await renderer.render({ graph: one("waits", { ms: 1 }) })).status, "success");
  });

  it("drops progress, and nothing else, for a reader that falls behind", async () => {
    const types: string[] = [];
    let last = 0;
    for await (const event of openOdd().stream({ graph: one("counts") })) {
      types.push(event.type);
      while (event.type === "node-start" && !existsSync(join(folder(), "counted"))) await sleep(10);
      if (event.type === "progress") last = event.value;
    }
    const others = types.filter((type) => type !== "progress");
    assert.deepEqual(others, ["run-start", "cached", "node-start", "node-done", "run-done"]);
    assert.equal(last, 12);
    assert.ok(types.length - others.length <= 2, types.join(" "));
  });

  it("rejects an aborted job with its signal's reason, running, waiting or not begun", async () => {
    const renderer = openOdd();
    const stop = new AbortController();
    const { signal } = stop;
    const started = [one("waits", { ms: 60_000 }), one("waits", { ms: 1 })].map((graph) =>
      renderer.render({ graph, signal }),
    );
    const rejected = started.map((work) => rejectsAs(signal, work));
    await sleep(300);
    stop.abort(new Error("the client has left"));
    await Promise.all(rejected);
    await rejectsAs(signal, renderer.render({ graph: one("waits", { ms: 1 }), signal }));
    assert.equal((await renderer.render({ graph: one("waits", { ms: 1 }) })).status, "success");
  });

  it("closes by `await using`, and refuses what runs, waits and comes later", async () => {
    const renderer = openOdd();
    const closed = (work: Promise<unknown>) => refuses(work, "run.interrupted", /^The renderer was closed; /);
    const refused = [one("spins"), one("waits", { ms: 1 })].map((graph) => closed(renderer.render({ graph })));
    await sleep(300);
    await renderer[Symbol.asyncDispose]();
    await Promise.all(refused);
    await closed(renderer.render({ graph: picture }));
    const events: RunEvent[] = [];
    const stream = async () => {
      for await (const event of renderer.stream({ graph: picture })) events.push(event);
    };
    await closed(stream());
    assert.deepEqual(typesOf(events), ["interrupted", "run-done"]);
  });

  it("refuses wrong options with a suggestion", async () => {
    await refuses(() => createRenderer({ thread: 1 } as never), "usage.invalid", /"thread"\. Did you mean threads\?/);
    await refuses(() => createRenderer({ threads: 0 }), "value.out-of-range", /1 to 256/);
    const renderer = open();
    await refuses(
      renderer.render({} as never),
      "usage.invalid",
      /graph: expected an object, JSON text, or the path, URL or bytes of a file/,
    );
    await refuses(renderer.render({ graph: {}, setup: "x" } as never), "usage.invalid", /unknown option "setup"/);
    await refuses(async () => renderer.stream({ graph: {}, targets: 5 } as never), "usage.invalid", /targets/);
    const set = { a: Number.NaN };
    await refuses(renderer.render({ graph: picture, set }), "usage.invalid", /set, a/);
  });

  it("leaves the caller's event loop free while a picture of 4096 x 4096 is made @alone @long", async function () {
    if (mainThreadMs() === undefined) skip(this, "processor time of a thread is read on Linux");
    const graph = {
      "1": { class_type: "EmptyImage", inputs: { width: 4096, height: 4096, batch_size: 1, color: 0x336699 } },
      "2": { class_type: "ImageBlur", inputs: { image: ["1", 0], blur_radius: 3, sigma: 1 } },
      "3": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "large" } },
    };
    const renderer = open({ threads: 1, outputDir: folder() });
    // the thread starts once for all jobs
    await renderer.render({
      graph: one("EmptyImage", { width: 8, height: 8, batch_size: 1, color: 0 }),
      targets: ["1"],
    });
    await sleep(50);
    // work of this thread between two timers: what else the machine does is not in it
    let [last, longest] = [mainThreadMs()!, 0];
    const look = () => {
      const now = mainThreadMs()!;
      longest = Math.max(longest, now - last);
      last = now;
    };
    const timer = setInterval(look, 1);
    const before = process.cpuUsage();
    const { status } = await renderer.render({ graph });
    const inMemory = await renderer.render({ graph, output: "memory" });
    const { user, system } = process.cpuUsage(before);
    clearInterval(timer);
    look();
    assert.equal(status, "success");
    const { width } = await decodePng(readFileSync(join(folder(), filesIn(folder())[0]!)));
    assert.equal(width, 4096);
    assert.equal((await decodePng(inMemory.files[0]!.bytes!)).width, 4096);
    // a blur, an encoding or a copy of the pixels as numbers on this thread is more than a fiftieth of all work
    const all = (user + system) / 1000;
    assert.ok(longest < all / 50, `${longest} ms of ${all} ms`);
  });
});
