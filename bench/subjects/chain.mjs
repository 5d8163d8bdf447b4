import { createRegistry, defineNode, executeGraph, int } from "latentkit";

const START = defineNode({ key: "Start", inputs: {}, outputs: { value: "INT" }, run: () => ({ value: 1 }) });
const NEXT = defineNode({
  key: "Next",
  inputs: { value: int() },
  outputs: { value: "INT" },
  outputNode: true,
  run: ({ value }) => ({ value: value + 1 }),
});

/** A run of a chain of nodes that do next to nothing: what the executor itself costs, validation included. */
export function chainRun(nodes, cache) {
  const registry = createRegistry([START, NEXT]);
  const graph = { 0: { class_type: "Start", inputs: {} } };
  for (let i = 1; i < nodes; i++) graph[i] = { class_type: "Next", inputs: { value: [String(i - 1), 0] } };
  const last = String(nodes - 1);
  return async () => {
    let end;
    for await (const event of executeGraph(graph, { registry, cache, targets: [last] })) end = event;
    if (end.outputs[last]?.[0] !== nodes) throw new Error(`the chain ended with ${JSON.stringify(end)}`);
  };
}
