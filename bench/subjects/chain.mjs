import { createRegistry, defineNode, executeGraph, int } from "latentkit";

const START = defineNode({ key: "Start", inputs: {}, outputs: { value: "INT" }, run: () => ({ value: 1 }) });
const NEXT = defineNode({
  key: "Next",
  inputs: { value: int() },
  outputs: { value: "INT" },
  outputNode: true,
  run: ({ value }) => ({ value: value + 1 }),
});

/** JavaScript is compiled while it runs: the first runs cost ten times what the later ones do. */
const WARM_UP_MS = 2500;

/** A run of a chain of nodes that do next to nothing, warm: the cost of the executor itself, with validation. */
export async function chainRun(nodes, cache) {
  const registry = createRegistry([START, NEXT]);
  const graph = { 0: { class_type: "Start", inputs: {} } };
  for (let i = 1; i < nodes; i++) graph[i] = { class_type: "Next", inputs: { value: [String(i - 1), 0] } };
  const last = String(nodes - 1);
  const run = async () => {
    let end;
    for await (const event of executeGraph(graph, { registry, cache, targets: [last] })) end = event;
    if (end.outputs[last]?.[0] !== nodes) throw new Error(`the chain ended with ${JSON.stringify(end)}`);
  };
  for (const end = performance.now() + WARM_UP_MS; performance.now() < end; ) await run();
  return run;
}
