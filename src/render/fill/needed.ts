import type { Graph } from "../../graph/parse.js";
import { isPlainObject } from "../../io/json/lossless.js";

// decision 12
/** All nodes that may run for these, those of lazy branches included. */
export function neededBy(graph: Graph, roots: readonly string[]): Set<string> {
  const needed = new Set<string>();
  const queue = roots.filter((id) => Object.hasOwn(graph.prompt, id));
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (needed.has(id)) continue;
    needed.add(id);
    const { inputs } = graph.prompt[id] as { inputs?: unknown };
    for (const value of isPlainObject(inputs) ? Object.values(inputs) : []) {
      const source: unknown = Array.isArray(value) ? value[0] : undefined;
      if (typeof source === "string" && Object.hasOwn(graph.prompt, source)) queue.push(source);
    }
  }
  return needed;
}
