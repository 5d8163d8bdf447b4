import assert from "node:assert/strict";
import { CACHE_POLICIES, createCache } from "#src/graph/memory/cache.js";
import { Blocker, block, defineNode } from "#src/nodes/define.js";
import { int } from "#src/nodes/inputs.js";
import { endOf, eventsOf, node, basicRegistry as registryOf } from "../../helpers/graph/graph-nodes.js";
import { seededInts } from "../../helpers/seeded.js";

type Value = number | Blocker;
type Link = [string, number];
type Inputs = Record<string, number | Link>;
type Graph = Record<string, { class_type: string; inputs: Inputs }>;
const link = { optional: true, lazy: true } as const;

const registry = registryOf(
  defineNode({ key: "Two", inputs: { a: int() }, outputs: { a: "INT", b: "INT" }, run: ({ a }) => ({ a, b: a * 3 }) }),
  defineNode({
    key: "List",
    inputs: { n: int() },
    outputs: { items: { type: "INT", list: true } },
    run: ({ n }) => [range(n)],
  }),
  defineNode({
    key: "Whole",
    inputs: { a: int(), b: int() },
    outputs: { sum: "INT" },
    inputIsList: true,
    run: ({ a, b }) => [a.length * 100 + ([...a, ...b] as number[]).reduce((sum, x) => sum + x, 0)],
  }),
  defineNode({ key: "Odd", inputs: { a: int() }, outputs: { a: "INT" }, run: ({ a }) => [a % 2 === 1 ? block() : a] }),
  defineNode({
    key: "Switch",
    inputs: { sel: int(), a: int(link), b: int(link) },
    outputs: { v: "INT" },
    // half of them ask for what they have, half only for what they lack
    checkLazy: (inputs) => {
      const wanted = Number(inputs.sel) % 2 === 0 ? "a" : "b";
      return inputs[wanted] === undefined || Number(inputs.sel) > 3 ? [wanted] : [];
    },
    run: ({ sel, a, b }) => [sel % 2 === 0 ? a : b],
  }),
);
const range = (n: number) => Array.from({ length: (Math.abs(n) % 3) + 1 }, (_, i) => i + n);

/** Meaning of a graph: the values of every node by plain recursion, nothing shared or cached. */
function evaluate(graph: Graph, id: string, slot: number): Value[] {
  const { class_type, inputs } = graph[id]!;
  const lists: Record<string, Value[]> = {};
  const read = (input: string) => {
    const given = inputs[input]!;
    lists[input] ??= Array.isArray(given) ? evaluate(graph, ...given) : [given];
    return lists[input];
  };
  const mapped = (names: string[], apply: (...values: number[]) => Value[]): Value[] => {
    const values = names.map(read);
    const n = Math.max(...values.map(({ length }) => length));
    return Array.from({ length: n }, (_, i) => values.map((list) => list[Math.min(i, list.length - 1)]!)).flatMap(
      (call) => (call.some((value) => value instanceof Blocker) ? [new Blocker()] : apply(...(call as number[]))),
    );
  };
  switch (class_type) {
    case "Const":
      return [inputs.value as number];
    case "Add":
      return mapped(["a", "b"], (a, b) => [(a + b) % 1_000_003]);
    case "Two":
      return mapped(["a"], (a) => [slot === 0 ? a : a * 3]);
    case "List":
      return mapped(["n"], range);
    case "Odd":
      return mapped(["a"], (a) => [a % 2 === 1 ? new Blocker() : a]);
    case "Whole": {
      const [a, b] = [read("a"), read("b")];
      const all = [...a, ...b];
      if (all.some((value) => value instanceof Blocker)) return [new Blocker()];
      return [a.length * 100 + (all as number[]).reduce((sum, x) => sum + x, 0)];
    }
    default: {
      const wanted = new Set(
        (read("sel") as Value[])
          .filter((sel) => !(sel instanceof Blocker))
          .map((sel) => ((sel as number) % 2 === 0 ? "a" : "b")),
      );
      const names = ["sel", ...wanted];
      return mapped(names, (sel, ...chosen) => [chosen[names.indexOf(sel % 2 === 0 ? "a" : "b") - 1]!]);
    }
  }
}

const INPUTS: Readonly<Record<string, readonly string[]>> = {
  Const: ["value"],
  Add: ["a", "b"],
  Two: ["a"],
  List: ["n"],
  Odd: ["a"],
  Whole: ["a", "b"],
  Switch: ["sel", "a", "b"],
};

function randomGraph(next: (n: number) => number): Graph {
  const graph: Graph = {};
  const count = 3 + next(12);
  for (let i = 0; i < count; i++) {
    const class_type = i === 0 ? "Const" : Object.keys(INPUTS)[next(7)]!;
    const inputs: Inputs = {};
    for (const input of INPUTS[class_type]!) {
      const source = next(Math.max(1, i));
      const slots = graph[`n${source}`]?.class_type === "Two" ? 2 : 1;
      const isLiteral = class_type === "Const" || next(4) === 0;
      inputs[input] = isLiteral ? next(6) : [`n${source}`, next(slots)];
    }
    graph[`n${i}`] = { class_type, inputs };
  }
  return graph;
}

/** Changes one literal, so that a cache has something to tell apart. */
function mutate(graph: Graph, next: (n: number) => number): void {
  const nodes = Object.values(graph);
  const { inputs } = nodes[next(nodes.length)]!;
  for (const input of Object.keys(inputs)) if (!Array.isArray(inputs[input])) inputs[input] = next(6);
}

const plainValues = (values: Value[]) => values.map((value) => (value instanceof Blocker ? "blocked" : value));

describe("executeGraph and a naive evaluator", () => {
  for (const policy of CACHE_POLICIES) {
    it(`agree on random graphs over several runs, cache policy ${policy}`, async () => {
      for (let seed = 0; seed < 150; seed++) {
        const next = seededInts(seed);
        const graph = randomGraph(next);
        const cache = createCache({ policy, size: policy === "bytes" ? 3000 : 4 });
        for (let run = 0; run < 4; run++) {
          const outs = Object.keys(graph).map((id) => [`o${id}`, node("Show", { x: [id, 0] })]);
          const targets = Object.keys(graph).filter(() => next(2) === 0);
          const roots = targets.length > 0 ? targets : ["n0"];
          const end = endOf(
            await eventsOf(
              { ...graph, ...Object.fromEntries(outs) },
              { registry, cache, targets: roots.flatMap((id) => [id, `o${id}`]) },
            ),
          );
          assert.equal(end.status, "success", `seed ${seed}`);
          for (const id of roots) {
            const values = evaluate(graph, id, 0);
            const got = [end.outputs[id]![0]].flat() as Value[];
            assert.deepEqual(plainValues(got), plainValues(values), `seed ${seed} run ${run} node ${id}`);
            const shown = values.filter((value) => !(value instanceof Blocker));
            assert.deepEqual(end.ui[`o${id}`]?.x ?? [], shown, `seed ${seed} run ${run} node o${id}`);
          }
          mutate(graph, next);
        }
      }
    });
  }
});
