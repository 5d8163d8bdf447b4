import assert from "node:assert/strict";
import { createCache } from "#src/graph/cache.js";
import { chain, eventsOf, node, only } from "../../../helpers/graph/graph-nodes.js";

const chainFrom = (value: number) => ({
  a: node("Const", { value }),
  sum: node("Add", { a: ["still", 0], b: ["a", 0] }),
  out: node("Show", { x: ["sum", 0] }),
});

describe("results that no other run will take", () => {
  it("are not kept in a shared cache, nor is what follows from them; equal nodes still share them", async () => {
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
      const events = await eventsOf(graph(a), { cache, passing: new Set(["a", "b"]) });
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

  it("leave no signature behind", async () => {
    const cache = createCache();
    const { signatures } = cache as unknown as { signatures: ReadonlyMap<string, number> };
    const known: number[] = [];
    for (let value = 0; value < 3; value++) {
      const graph = { still: node("Const", { value: 5 }), ...chainFrom(value) };
      await eventsOf(graph, { cache, passing: new Set(["a"]) });
      known.push(signatures.size);
    }
    assert.ok(known[0]! > 0);
    assert.equal(known[2], known[0]);
  });

  it("are all results of a long chain behind the first", async () => {
    const cache = createCache();
    await eventsOf(chain(200), { cache, passing: new Set(["n0"]) });
    assert.equal(cache.size, 0);
  });
});
