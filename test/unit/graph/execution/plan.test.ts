import assert from "node:assert/strict";
import { Plan } from "#src/graph/execution/plan.js";
import { seededInts } from "../../../helpers/seeded.js";

function planOf(sources: Record<string, string[]>, outputs: string[]): Plan {
  const plan = new Plan({ sourcesOf: (id) => sources[id] ?? [], isOutput: (id) => outputs.includes(id) });
  for (const id of outputs) plan.add(id);
  return plan;
}

function drain(plan: Plan): string[] {
  const order: string[] = [];
  for (let id = plan.take(); id !== undefined; id = plan.take()) {
    order.push(id);
    plan.done(id);
  }
  return order;
}

describe("Plan", () => {
  it("takes the last listed link first, and nodes near an output before others", () => {
    assert.deepEqual(drain(planOf({ out: ["sum"], sum: ["a", "b"] }, ["out"])), ["b", "a", "sum", "out"]);
    const sources = { 4: ["3"], 3: ["1", "2"], 5: ["1"], 6: ["2"] };
    assert.deepEqual(drain(planOf(sources, ["4", "5", "6"])), ["2", "6", "1", "5", "3", "4"]);
  });

  it("lets a node wait again, for more", () => {
    const plan = planOf({ out: ["lazy"], lazy: [] }, ["out"]);
    assert.equal(plan.take(), "lazy");
    plan.link("late", "lazy");
    plan.back("lazy");
    assert.deepEqual(drain(plan), ["late", "lazy", "out"]);
    assert.equal(plan.size, 0);
  });

  it("does not wait for nodes that are done, nor twice for one node", () => {
    const plan = planOf({ out: ["a", "a"], a: [] }, ["out"]);
    assert.equal(plan.take(), "a");
    plan.done("a");
    plan.link("a", "out");
    plan.link("a", "out");
    assert.deepEqual(drain(plan), ["out"]);
  });

  it("lists the nodes that wait in a cycle", () => {
    const plan = planOf({ out: ["a"], a: ["b"], b: ["a"] }, ["out"]);
    assert.equal(plan.take(), undefined);
    assert.deepEqual(plan.waiting(), ["out", "a", "b"]);
  });

  it("agrees with a naive search on random graphs", () => {
    for (let seed = 0; seed < 300; seed++) {
      const next = seededInts(seed);
      const n = 3 + next(12);
      const sources: Record<string, string[]> = {};
      for (let i = 0; i < n; i++) {
        const count = i === 0 ? 0 : next(4);
        sources[i] = Array.from({ length: count }, () => String(next(i)));
      }
      const outputs = [...new Set(Array.from({ length: 1 + next(3) }, () => String(next(n))))];
      assert.deepEqual(drain(planOf(sources, outputs)), naiveOrder(sources, outputs), `seed ${seed}`);
    }
  });
});

/** The rule as it reads: of all ready nodes an output, one that feeds an output, one two away, else the first found. */
function naiveOrder(sources: Record<string, string[]>, outputs: string[]): string[] {
  const found: string[] = [];
  for (const output of outputs) {
    const stack = [output];
    for (let id = stack.pop(); id !== undefined; id = stack.pop()) {
      if (found.includes(id)) continue;
      found.push(id);
      stack.push(...sources[id]!);
    }
  }
  const consumers = (id: string) => found.filter((other) => sources[other]!.includes(id));
  const isOutput = (id: string) => outputs.includes(id);
  const done: string[] = [];
  while (done.length < found.length) {
    const ready = found.filter((id) => !done.includes(id) && sources[id]!.every((source) => done.includes(source)));
    done.push(
      ready.find(isOutput) ??
        ready.find((id) => consumers(id).some(isOutput)) ??
        ready.find((id) => consumers(id).some((other) => consumers(other).some(isOutput))) ??
        ready[0]!,
    );
  }
  return done;
}
