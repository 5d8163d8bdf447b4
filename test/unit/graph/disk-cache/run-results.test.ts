import assert from "node:assert/strict";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCache, createDiskCache, Tensor } from "latentkit";
import type { RunEvent } from "#src/graph/events.js";
import { block, defineNode, type NodeDefinition } from "#src/nodes/define.js";
import { any, int, latent } from "#src/nodes/inputs.js";
import { createRegistry } from "#src/nodes/registry.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";
import { type ExecuteOptions, endOf, eventsOf, node, only, SHOW } from "../../../helpers/graph/graph-nodes.js";

type Flags = Partial<Pick<NodeDefinition, "outputNode" | "writesFiles" | "hasUi" | "notIdempotent" | "reachesNetwork">>;

describe("a run with a disk cache", () => {
  const folder = temporaryFolder();
  let ran: string[] = [];
  beforeEach(() => {
    ran = [];
  });
  const sum = (key: string, more: Partial<Parameters<typeof defineNode>[0]> = {}) =>
    defineNode({
      key,
      inputs: { a: int(), b: int({ optional: true, default: 0 }) },
      outputs: { sum: "INT" },
      run: ({ a, b }, { nodeId }) => {
        ran.push(nodeId);
        return { sum: Number(a) + Number(b) };
      },
      ...more,
    });
  const noted = (key: string, type: string, run: (nodeId: string) => unknown) =>
    defineNode({
      key,
      inputs: { a: int() },
      outputs: { o: type },
      run: (_, { nodeId }) => {
        ran.push(nodeId);
        return { o: run(nodeId) };
      },
    });
  const PICK = defineNode({
    key: "Pick",
    inputs: { which: int(), first: any({ lazy: true }), second: any({ lazy: true }) },
    outputs: { o: "*" },
    checkLazy: ({ which }) => [which === 1 ? "first" : "second"],
    run: ({ which, first, second }) => [which === 1 ? first : second],
  });
  const nodes = (...more: NodeDefinition[]) => createRegistry([sum("Sum"), SHOW, PICK, ...more]);
  const open = () => createDiskCache({ folder: folder(), minMs: 0 });

  /** One run as of a new process. */
  const go = async (graph: unknown, options: Partial<ExecuteOptions> & { more?: NodeDefinition[] } = {}) => {
    ran = [];
    const registry = options.registry ?? nodes(...(options.more ?? []));
    const events = await eventsOf(graph, { builtIns: registry, registry, diskCache: open(), ...options });
    return {
      events,
      ran,
      cached: only(events, "cached").flatMap(({ nodeIds }) => nodeIds),
      started: only(events, "node-start").map(({ nodeId }) => nodeId),
      done: only(events, "node-done").map(({ nodeId }) => nodeId),
      warnings: only(events, "warning").map(({ message }) => message),
      end: endOf(events),
    };
  };
  const line = {
    a: node("Sum", { a: 1 }),
    b: node("Sum", { a: ["a", 0] }),
    c: node("Sum", { a: ["b", 0], b: 5 }),
    out: node("Show", { x: ["c", 0] }),
  };
  const entries = () => filesIn(folder()).map((name) => join(folder(), name));

  it("reads the nearest result, reports it as cached, and runs nothing before it", async () => {
    const first = await go(line);
    assert.deepEqual([first.cached, first.ran, entries().length], [[], ["a", "b", "c"], 3]);
    const second = await go(line);
    assert.deepEqual([second.cached, second.ran], [["c"], []]);
    assert.deepEqual([second.started, second.done], [["out"], ["c", "out"]]);
    assert.deepEqual(second.end.ui, first.end.ui);
    const done = only(second.events, "node-done")[0]!;
    assert.deepEqual([done.outputs, done.ms], [[6], 0]);
  });

  it("computes what a changed input affects, from stored results", async () => {
    await go(line);
    const other = await go({ ...line, c: node("Sum", { a: ["b", 0], b: 6 }) });
    assert.deepEqual([other.cached, other.ran, other.end.ui.out], [["b"], ["c"], { x: [7] }]);
    const both = await go({
      ...line,
      d: node("Sum", { a: ["a", 0], b: ["c", 0] }),
      out: node("Show", { x: ["d", 0] }),
    });
    assert.deepEqual([both.cached, both.ran, both.end.ui.out], [["a", "c"], ["d"], { x: [7] }]);
  });

  it("returns roots that are stored", async () => {
    const targets = ["c", "a"];
    const first = await go(line, { targets });
    const second = await go(line, { targets });
    assert.deepEqual([second.cached, second.ran, second.end.outputs], [["a", "c"], [], first.end.outputs]);
  });

  it("reads memory before the disk", async () => {
    const cache = createCache();
    const registry = nodes();
    await go(line, { cache, registry });
    for (const path of entries()) writeFileSync(path, "never read");
    const again = await go(line, { cache, registry });
    assert.deepEqual([again.ran, again.cached], [[], ["a", "b", "c", "out"]]);
    assert.equal(entries().length, 3);
  });

  it("computes a node and its sources where an entry is damaged", async () => {
    const first = await go(line);
    for (const path of entries()) writeFileSync(path, "x".repeat(500));
    const second = await go(line);
    assert.deepEqual([second.cached, second.ran, second.end.ui], [["c"], ["a", "b", "c"], first.end.ui]);
    assert.deepEqual(second.started, ["a", "b", "c", "out"]);
    assert.deepEqual((await go(line)).ran, [], "the damage is mended");
  });

  it("reads a result that another run has stored meanwhile", async () => {
    const registry = nodes();
    const meet = defineNode({
      key: "Meet",
      inputs: { a: int() },
      outputs: { o: "INT" },
      run: async ({ a }) => {
        await go(line, { registry, builtIns: registry });
        ran = [];
        return { o: a };
      },
    });
    // the one that feeds an output at once comes first
    const graph = { ...line, m: node("Meet", { a: 1 }), first: node("Show", { x: ["m", 0] }) };
    const met = await go(graph, { registry: createRegistry([meet], registry), builtIns: registry });
    assert.deepEqual([met.cached, met.ran, met.started], [[], [], ["m", "first", "out"]]);
    assert.deepEqual(met.done, ["m", "first", "a", "b", "c", "out"]);
  });

  it("reads lazy inputs only when they are needed", async () => {
    const graph = (which: number) => ({
      ...line,
      d: node("Sum", { a: 100 }),
      pick: node("Pick", { which, first: ["c", 0], second: ["d", 0] }),
      out: node("Show", { x: ["pick", 0] }),
    });
    const registry = nodes();
    // the picking node itself is not kept
    const builtIns = createRegistry([registry.get("Sum")!]);
    assert.deepEqual((await go(graph(1), { registry, builtIns })).ran, ["a", "b", "c"]);
    const second = await go(graph(1), { registry, builtIns });
    assert.deepEqual([second.ran, second.cached, second.started], [[], [], ["pick", "pick", "out"]]);
    assert.deepEqual(second.end.ui.out, { x: [6] });
    assert.deepEqual((await go(graph(2), { registry, builtIns })).ran, ["d"]);
  });

  it("keeps latents bit by bit and lists as lists, and maps over them as before", async () => {
    const samples = Tensor.from([1, -0, Number.NaN, 1e-42], [1, 1, 2, 2]);
    const more = [
      noted("Latent", "LATENT", () => ({ samples, batch_index: [3], noise_mask: undefined, words: ["ä"] })),
      defineNode({ key: "Copy", inputs: { x: latent() }, outputs: { o: "LATENT" }, run: ({ x }) => ({ o: { ...x } }) }),
      defineNode({
        key: "Range",
        inputs: { n: int() },
        outputs: { o: { type: "INT", list: true } },
        run: ({ n }) => ({ o: Array.from({ length: n }, (_, i) => i) }),
      }),
    ];
    const graph = {
      l: node("Latent", { a: 1 }),
      copy: node("Copy", { x: ["l", 0] }),
      r: node("Range", { n: 3 }),
      s: node("Sum", { a: ["r", 0], b: 10 }),
    };
    const targets = ["copy", "s", "r"];
    const first = await go(graph, { more, targets });
    const second = await go(graph, { more, targets });
    assert.deepEqual([second.cached.sort(), second.ran], [["copy", "r", "s"], []]);
    assert.deepEqual(second.end.outputs, first.end.outputs);
    const [{ samples: read }] = second.end.outputs.copy as [{ samples: Tensor }];
    assert.deepEqual(new Uint8Array(read.data.buffer, read.data.byteOffset, 16), new Uint8Array(samples.data.buffer));
    const empty = { ...graph, r: node("Range", { n: 0 }) };
    assert.deepEqual((await go(empty, { more, targets: ["s"] })).end.status, "success");
    assert.deepEqual((await go(empty, { more, targets: ["s"] })).end.outputs, { s: [[]] });
  });

  it("always runs nodes with side effects, and stores none of their readers", async () => {
    const all: Flags[] = [{ outputNode: true }, { writesFiles: true }, { hasUi: true }, { notIdempotent: true }];
    for (const flags of [...all, { reachesNetwork: true }]) {
      const more = [sum("Acts", flags)];
      const graph = { ...line, b: node("Acts", { a: ["a", 0] }) };
      await go(graph, { more });
      const second = await go(graph, { more });
      assert.deepEqual([second.cached, second.ran], [["a"], ["b", "c"]], JSON.stringify(flags));
    }
  });

  it("stores no result of a node with hidden inputs, but those of its readers", async () => {
    for (const hidden of ["PROMPT", "UNIQUE_ID", "EXTRA_PNGINFO"] as const) {
      const more = [sum("Sees", { hidden: { it: hidden } })];
      const graph = { ...line, b: node("Sees", { a: ["a", 0] }), out: node("Show", { x: ["b", 0] }) };
      await go(graph, { more });
      assert.deepEqual((await go(graph, { more })).ran, ["b"], hidden);
      const longer = { ...graph, out: node("Show", { x: ["c", 0] }) };
      await go(longer, { more });
      assert.deepEqual((await go(longer, { more })).ran, [], hidden);
      rmSync(folder(), { recursive: true });
    }
  });

  it("stores no models, functions, blockers or UI results", async () => {
    const makes: [type: string, value: unknown][] = [
      ["VAE", { encode: () => 1, decode: () => 1 }],
      ["PIPE_LINE", { samples: null }],
      ["*", () => 1],
      ["*", { inner: [new Map()] }],
      ["*", block()],
      ["INT", "no integer"],
    ];
    for (const [type, value] of makes) {
      const more = [noted("Make", type, () => value)];
      await go({ m: node("Make", { a: 1 }) }, { more, targets: ["m"] });
      const second = await go({ m: node("Make", { a: 1 }) }, { more, targets: ["m"] });
      assert.deepEqual([second.ran, second.cached, entries()], [["m"], [], []], type);
    }
    const more = [sum("Tells", { run: ({ a }) => ({ result: [a], ui: { text: [1] } }) })];
    const told = await go({ m: node("Tells", { a: 1 }) }, { more, targets: ["m"] });
    assert.deepEqual([told.end.ui, entries()], [{ m: { text: [1] } }, []]);
  });

  it("runs graphs that nodes return", async () => {
    const expands = defineNode({
      key: "Expands",
      inputs: { a: int() },
      outputs: { o: "INT" },
      run: ({ a }) => ({ expand: { x: node("Sum", { a, b: 1 }) }, result: [["x", 0]] }),
    });
    const graph = { ...line, b: node("Expands", { a: ["a", 0] }) };
    const first = await go(graph, { more: [expands] });
    assert.deepEqual(first.ran, ["a", "b.0.0.x", "c"]);
    const second = await go(graph, { more: [expands] });
    assert.deepEqual([second.ran, second.end.ui], [[], first.end.ui]);
  });

  it("stores nothing of a file that changed while it was read", async () => {
    let version = 1;
    const reads = sum("Reads", {
      isChanged: () => version,
      run: (_, { nodeId }) => {
        ran.push(nodeId);
        version++;
        return { sum: version };
      },
    });
    const graph = { ...line, a: node("Reads", { a: 1 }) };
    await go(graph, { more: [reads] });
    assert.deepEqual(entries(), []);
    version = 1;
    assert.deepEqual((await go(graph, { more: [reads] })).ran, ["a", "b", "c"]);
  });

  it("runs without a writable folder, and warns once", async () => {
    const place = join(folder(), "file");
    writeFileSync(place, "");
    const diskCache = createDiskCache({ folder: join(place, "cache"), minMs: 0 });
    const first = await go(line, { diskCache });
    assert.equal(first.end.status, "success");
    assert.equal(first.warnings.length, 1);
    assert.match(first.warnings[0]!, /^Results are not stored in the disk cache: Cannot write .*not a folder/);
    assert.equal(first.events.at(-2)?.type, "warning" satisfies RunEvent["type"]);
    assert.deepEqual((await go(line, { diskCache })).warnings, []);
  });

  it("costs nothing where it is off", async () => {
    await go(line, { diskCache: undefined });
    assert.deepEqual(readdirSync(folder()), []);
  });
});
