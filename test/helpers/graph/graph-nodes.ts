import type { RunEvent } from "#src/graph/events.js";
import { executeGraph } from "#src/graph/execute.js";
import type { Job } from "#src/graph/job.js";
import type { Surroundings } from "#src/graph/surroundings.js";
import { defineNode, type NodeDefinition } from "#src/nodes/define.js";
import { any, int } from "#src/nodes/inputs.js";
import { createRegistry } from "#src/nodes/registry.js";

/** Small nodes for tests of the graph: constants, sums, and an output that shows its input. */
export const CONST = defineNode({
  key: "Const",
  inputs: { value: int({ min: -1000, max: 1000 }) },
  outputs: { value: "INT" },
  run: ({ value }) => ({ value }),
});
export const ADD = defineNode({
  key: "Add",
  inputs: { a: int(), b: int() },
  outputs: { sum: "INT" },
  run: ({ a, b }) => ({ sum: (a + b) % 1_000_003 }),
});
export const SHOW = defineNode({
  key: "Show",
  inputs: { x: any() },
  outputs: {},
  outputNode: true,
  run: ({ x }) => ({ ui: { x: [x] } }),
});
export const BASIC_NODES: readonly NodeDefinition[] = [CONST, ADD, SHOW];

export const basicRegistry = (...nodes: NodeDefinition[]) => createRegistry([...BASIC_NODES, ...nodes]);

/** One node of a graph. */
export const node = (class_type: string, inputs: Record<string, unknown> = {}) => ({ class_type, inputs });

/** Const 1, then n sums one after another (`isDiamond`: both inputs from the one before), then Show as node "out". */
export function chain(n: number, isDiamond = false): Record<string, unknown> {
  const graph: Record<string, unknown> = { n0: node("Const", { value: 1 }) };
  for (let i = 1; i <= n; i++) {
    const before = [`n${i - 1}`, 0];
    graph[`n${i}`] = node("Add", { a: before, b: isDiamond ? before : 1 });
  }
  return { ...graph, out: node("Show", { x: [`n${n}`, 0] }) };
}

/** Job and surroundings of a run in one. */
export type ExecuteOptions = Job & Surroundings;

/** All events of a run. */
export async function eventsOf(
  graph: unknown,
  options: Partial<ExecuteOptions> = {},
  onEvent: (event: RunEvent) => void = () => {},
): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of executeGraph(graph, options, { registry: basicRegistry(), ...options })) {
    events.push(event);
    onEvent(event);
  }
  return events;
}

type OfType<T extends RunEvent["type"]> = Extract<RunEvent, { type: T }>;

/** The events of one type. */
export const only = <T extends RunEvent["type"]>(events: readonly RunEvent[], type: T): OfType<T>[] =>
  events.filter((event): event is OfType<T> => event.type === type);

/** The last event, which every run has. */
export function endOf(events: readonly RunEvent[]): OfType<"run-done"> {
  const last = events.at(-1);
  if (last?.type !== "run-done") throw new Error(`expected run-done at the end, received ${last?.type}`);
  return last;
}
