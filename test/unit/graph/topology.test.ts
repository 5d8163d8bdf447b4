import assert from "node:assert/strict";
import { findCycles } from "#src/graph/topology.js";
import { seededInts } from "../../helpers/seeded.js";

const find = (sources: Record<string, string[]>) => findCycles(new Map(Object.entries(sources)));

describe("findCycles", () => {
  it("orders sources first if there is no cycle", () => {
    const { order, cycles, stuck } = find({ c: ["a", "b"], b: ["a"], a: [] });
    assert.deepEqual([order, cycles, [...stuck]], [["a", "b", "c"], [], []]);
  });

  it("names each cycle once, in the direction of the data, the lowest id first", () => {
    assert.deepEqual(find({ a: ["a"] }).cycles, [["a"]]);
    // 10 takes from 9, 9 from 2, 2 from 10
    assert.deepEqual(find({ 10: ["9"], 9: ["2"], 2: ["10"], x: ["10"], free: [] }).cycles, [["2", "9", "10"]]);
    const two = find({ a: ["b"], b: ["a"], c: ["d"], d: ["c", "a"] });
    assert.deepEqual(two.cycles.length, 2);
    assert.deepEqual([...find({ a: ["a"], b: ["a"], c: [] }).stuck], ["a", "b"]);
  });

  it("agrees with a naive search on random graphs", () => {
    for (let seed = 0; seed < 300; seed++) {
      const next = seededInts(seed);
      const n = 2 + next(7);
      const sources: Record<string, string[]> = {};
      for (let i = 0; i < n; i++) {
        sources[i] = [...new Set(Array.from({ length: next(3) }, () => String(next(n))))];
      }
      const reaches = (from: string, goal: string, seen = new Set<string>()): boolean =>
        sources[from]!.some((id) => id === goal || (!seen.has(id) && reaches(id, goal, seen.add(id))));
      const inCycle = Object.keys(sources).filter((id) => reaches(id, id));
      const { order, cycles, stuck } = find(sources);
      assert.equal(cycles.length > 0, inCycle.length > 0);
      for (const cycle of cycles) {
        for (const [i, id] of cycle.entries()) assert.ok(sources[cycle[(i + 1) % cycle.length]!]!.includes(id));
      }
      for (const id of inCycle) assert.ok(stuck.has(id));
      for (const [i, id] of order.entries()) for (const source of sources[id]!) assert.ok(order.indexOf(source) < i);
      assert.equal(order.length + stuck.size, n);
    }
  });
});
