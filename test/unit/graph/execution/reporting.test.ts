import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDiskCache } from "#src/graph/disk-cache/disk-cache.js";
import type { RunEvent } from "#src/graph/events.js";
import { createCache } from "#src/graph/memory/cache.js";
import { defineNode } from "#src/nodes/define.js";
import { any, int, text } from "#src/nodes/inputs.js";
import { basicRegistry, eventsOf, node, only } from "../../../helpers/graph/graph-nodes.js";

const WARN = defineNode({
  key: "Warn",
  inputs: { text: text() },
  outputs: { text: "STRING" },
  cacheVersion: "1",
  run: ({ text }, { log }) => {
    log(`${text} is left out.`);
    log(`${text} is left out.`);
    return { text };
  },
});
const PASS = defineNode({
  key: "Pass",
  inputs: { x: any() },
  outputs: { x: "STRING" },
  cacheVersion: "1",
  run: ({ x }) => ({ x }),
});
const GIVE = defineNode({ key: "Give", inputs: { x: any() }, outputs: { x: "*" }, run: ({ x }) => [x] });
const LIST = defineNode({
  key: "List",
  inputs: {},
  outputs: { items: { type: "*", list: true } },
  run: () => [[0.5, 1.5, 2.5]],
});
const TAKE = defineNode({
  key: "Take",
  inputs: { n: int() },
  outputs: {},
  outputNode: true,
  run: ({ n }) => ({ ui: { n: [n] } }),
});
const INNER = defineNode({
  key: "Inner",
  inputs: {},
  outputs: { text: "STRING" },
  run: () => ({
    result: [["w", 0]],
    expand: { w: node("Warn", { text: "inner" }), t: node("Take", { n: 2.5 }) },
  }),
});
const registry = basicRegistry(WARN, PASS, GIVE, LIST, TAKE, INNER);
const warnings = (events: readonly RunEvent[]) =>
  only(events, "warning").map(({ nodeId, message }) => [nodeId, message]);
/** Warn as node `id`, Pass, Show. */
const graphOf = (id: string) => ({
  [id]: node("Warn", { text: "fox" }),
  p: node("Pass", { x: [id, 0] }),
  out: node("Show", { x: ["p", 0] }),
});
const said = (id: string) => [[id, `Node ${id} (Warn): fox is left out.`]];

describe("warnings of a run", () => {
  it("come once for each sentence of a node", async () => {
    assert.deepEqual(warnings(await eventsOf(graphOf("1"), { registry })), said("1"));
  });

  it("come again if all results are cached, and if a reader's alone is", async () => {
    const cache = createCache();
    const run = async (graph: unknown) => warnings(await eventsOf(graph, { registry, cache }));
    assert.deepEqual(await run(graphOf("1")), said("1"));
    assert.deepEqual(await run(graphOf("1")), said("1"));
    const other = { ...graphOf("1"), out: node("Show", { x: ["p", 0] }), more: node("Show", { x: ["1", 0] }) };
    assert.deepEqual(await run(other), said("1"));
  });

  it("name the node of this run if another graph has computed the result", async () => {
    const cache = createCache();
    await eventsOf(graphOf("1"), { registry, cache });
    assert.deepEqual(warnings(await eventsOf(graphOf("7"), { registry, cache })), said("7"));
  });

  it("keep results out of the disk cache, so that the next process warns", async () => {
    const folder = mkdtempSync(join(tmpdir(), "latentkit-"));
    try {
      for (let process = 0; process < 2; process++) {
        const diskCache = createDiskCache({ folder, minMs: 0 });
        assert.deepEqual(warnings(await eventsOf(graphOf("1"), { registry, diskCache })), said("1"));
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("name both values of one that a link bends, once for all of a list", async () => {
    const one = { "1": node("Give", { x: 20.5 }), "2": node("Take", { n: ["1", 0] }) };
    assert.deepEqual(warnings(await eventsOf(one, { registry })), [
      ["2", 'Node 2 (Take), input "n": 20.5 becomes 20.'],
    ]);
    const list = { "1": node("List"), "2": node("Take", { n: ["1", 0] }) };
    assert.deepEqual(warnings(await eventsOf(list, { registry })), [["2", 'Node 2 (Take), input "n": 0.5 becomes 0.']]);
  });

  it("name the graph's node for those inside its expansion, in a cached run too", async () => {
    const cache = createCache();
    const graph = { "1": node("Inner"), out: node("Show", { x: ["1", 0] }) };
    const expected = [
      ["1", 'Node 1 (Take), input "n": 2.5 becomes 2.'],
      ["1", "Node 1 (Warn): inner is left out."],
    ];
    const first = warnings(await eventsOf(graph, { registry, cache })).sort();
    assert.deepEqual(first, expected);
    const second = warnings(await eventsOf(graph, { registry, cache }));
    assert.deepEqual(second, expected.slice(1));
  });

  it("are bounded if a hostile graph has many", async () => {
    const graph = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`${i}`, node("Take", { n: 0.5 })]));
    assert.equal(warnings(await eventsOf(graph, { registry })).length, 200);
    const linked = Object.entries(graph).map(([id]) => [id, node("Take", { n: ["g", 0] })]);
    const events = await eventsOf({ g: node("Give", { x: 0.5 }), ...Object.fromEntries(linked) }, { registry });
    assert.equal(warnings(events).length, 200);
  });
});
