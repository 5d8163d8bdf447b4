import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { executeGraph } from "#src/graph/execute.js";
import { CACHE_POLICIES, type Cache, createCache } from "#src/graph/memory/cache.js";
import { defineNode } from "#src/nodes/define.js";
import { any, int } from "#src/nodes/inputs.js";
import { createRegistry } from "#src/nodes/registry.js";
import { chain, endOf, eventsOf, node, only } from "../../../helpers/graph/graph-nodes.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Nodes whose values are objects, and how many of them are still in memory. */
function tracked() {
  const made: WeakRef<object>[] = [];
  const ran: string[] = [];
  const make = (nodeId: string, value: number) => {
    ran.push(nodeId);
    const object = { value };
    made.push(new WeakRef(object));
    return [object];
  };
  const alive = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    return made.filter((ref) => ref.deref() !== undefined).length;
  };
  const Start = defineNode({
    key: "Start",
    inputs: { value: int() },
    outputs: { o: "*" },
    run: ({ value }, { nodeId }) => make(nodeId, value),
  });
  const Next = defineNode({
    key: "Next",
    inputs: { a: any(), b: any({ optional: true }), lazy: any({ optional: true, lazy: true }) },
    outputs: { o: "*" },
    checkLazy: ({ b }) => (b === "ask" ? ["lazy"] : []),
    run: ({ a, lazy }, { nodeId }) =>
      make(nodeId, (a as { value: number }).value + ((lazy as { value: number })?.value ?? 1)),
  });
  const Count = defineNode({
    key: "Count",
    inputs: { a: any() },
    outputs: { value: "INT", alive: "INT" },
    outputNode: true,
    run: async ({ a }) => [(a as { value: number }).value, await alive()],
  });
  const Back = defineNode({
    key: "Back",
    inputs: { a: any() },
    outputs: { o: "*" },
    run: () => ({ expand: { x: node("Next", { a: ["n1", 0] }) }, result: { o: ["x", 0] } }),
  });
  return { registry: createRegistry([Start, Next, Count, Back]), Count, ran };
}

/** s → n1 → … → n<length> → out */
function line(length: number): Record<string, unknown> {
  const graph: Record<string, unknown> = { s: node("Start", { value: 0 }) };
  for (let i = 1; i <= length; i++) graph[`n${i}`] = node("Next", { a: [i === 1 ? "s" : `n${i - 1}`, 0] });
  return { ...graph, out: node("Count", { a: [`n${length}`, 0] }) };
}

async function outputOf(graph: object, registry: ReturnType<typeof createRegistry>, cache?: Cache) {
  for await (const event of executeGraph(graph, {}, { registry, cache })) {
    if (event.type === "node-error") throw event.error;
    if (event.type === "run-done") return event.outputs.out;
  }
  return undefined;
}

describe("results of a run", () => {
  it("are released with their last reader if no cache holds them", async () => {
    for (const cache of [undefined, createCache({ policy: "none" })]) {
      const [value, alive] = (await outputOf(line(20), tracked().registry, cache)) as [number, number];
      assert.equal(value, 20);
      // the input, and the one before it, which the last event showed
      assert.ok(alive <= 2, `${alive} of 21 are alive`);
    }
  });

  it("stay in a cache that other runs share", async () => {
    const [, alive] = (await outputOf(line(20), tracked().registry, createCache())) as [number, number];
    assert.equal(alive, 21);
  });

  it("stay until their last reader, targets until the end of the run", async () => {
    const { registry, ran } = tracked();
    const graph = line(4);
    graph.n4 = node("Next", { a: ["n3", 0], b: "ask", lazy: ["s", 0] });
    const done = endOf(await eventsOf(graph, { registry, targets: ["out", "n2"] }));
    assert.deepEqual(done.outputs.n2, [{ value: 2 }]);
    assert.equal(done.outputs.out![0], 3);
    assert.deepEqual(ran, ["s", "n1", "n2", "n3", "n4"]);
  });

  const caches = [undefined, ...CACHE_POLICIES.flatMap((policy) => [{ policy }, { policy, size: 0 }])];
  for (const options of caches) {
    it(`serve equal nodes, each of which runs once, cache ${JSON.stringify(options)}`, async () => {
      const { registry, ran } = tracked();
      const graph = line(3);
      // equal to n1, wanted when all that read n1 are done
      graph.t1 = node("Next", { a: ["s", 0] });
      graph.n4 = node("Next", { a: ["n3", 0], b: "ask", lazy: ["t1", 0] });
      graph.out = node("Count", { a: ["n4", 0] });
      const cache = options && createCache(options);
      const events = await eventsOf(graph, { registry, cache });
      assert.equal(endOf(events).outputs.out![0], 4);
      assert.deepEqual(ran, ["s", "n1", "n2", "n3", "n4"]);
      if (options?.policy !== "none") return;
      await eventsOf(graph, { registry, cache });
      assert.deepEqual([ran.length, cache?.size], [10, 0]);
    });
  }

  it("are computed again for an expansion that reads a released node", async () => {
    const { registry, ran } = tracked();
    const graph = { ...line(3), b: node("Back", { a: ["n3", 0] }), out: node("Count", { a: ["b", 0] }) };
    const events = await eventsOf(graph, { registry });
    assert.equal(endOf(events).status, "success");
    assert.equal(endOf(events).outputs.out![0], 2);
    assert.deepEqual(ran, ["s", "n1", "n2", "n3", "s", "n1", "b.0.0.x"]);
  });
});

const chainFrom = (value: number) => ({
  a: node("Const", { value }),
  sum: node("Add", { a: ["still", 0], b: ["a", 0] }),
  out: node("Show", { x: ["sum", 0] }),
});

describe("results of volatile nodes", () => {
  it("stay out of a shared cache with all that follows; equal nodes share them", async () => {
    const cache = createCache();
    const graph = (a: number) => ({
      still: node("Const", { value: 5 }),
      a: node("Const", { value: a }),
      b: node("Const", { value: a }),
      sum: node("Add", { a: ["still", 0], b: ["a", 0] }),
      out: node("Show", { x: ["sum", 0] }),
      other: node("Show", { x: ["b", 0] }),
    });
    const started = async (a: number) => {
      const events = await eventsOf(graph(a), { cache, volatileNodes: new Set(["a", "b"]) });
      return only(events, "node-start").map(({ nodeId }) => nodeId);
    };
    const first = await started(1);
    assert.equal(first.filter((id) => id === "a" || id === "b").length, 1);
    assert.deepEqual(first.filter((id) => !["a", "b"].includes(id)).sort(), ["other", "out", "still", "sum"]);
    assert.equal(cache.size, 1);
    assert.equal((await started(2)).includes("still"), false);
    // the same again is computed again: it was not to come
    assert.equal((await started(2)).includes("sum"), true);
    assert.equal(cache.size, 1);
  });

  it("are not asked whether they have changed, which others are", async () => {
    let asked = 0;
    const { Count } = tracked();
    const file = defineNode({
      key: "File",
      inputs: {},
      outputs: { o: "*" },
      isChanged: () => ++asked,
      run: () => [{ value: 1 }],
    });
    const registry = createRegistry([file, Count]);
    const graph = { a: node("File", {}), out: node("Count", { a: ["a", 0] }) };
    assert.equal(endOf(await eventsOf(graph, { registry, cache: createCache() })).status, "success");
    assert.equal(asked, 1);
    const volatileNodes = new Set(["a"]);
    assert.equal(endOf(await eventsOf(graph, { registry, cache: createCache(), volatileNodes })).status, "success");
    assert.equal(asked, 1);
  });

  it("leave no signature in the cache", async () => {
    const cache = createCache();
    const known: number[] = [];
    for (let value = 0; value < 3; value++) {
      const graph = { still: node("Const", { value: 5 }), ...chainFrom(value) };
      await eventsOf(graph, { cache, volatileNodes: new Set(["a"]) });
      known.push(cache.signatureCount);
    }
    assert.ok(known[0]! > 0);
    assert.equal(known[2], known[0]);
  });

  it("include a whole chain behind a volatile node", async () => {
    const cache = createCache();
    await eventsOf(chain(200), { cache, volatileNodes: new Set(["n0"]) });
    assert.equal(cache.size, 0);
  });
});
