import { LatentkitError, where } from "../../errors.js";
import { findDefinitions, type Graph } from "../../graph/parse.js";
import { isPlainObject } from "../../io/json-lossless.js";
import { defaultRegistry } from "../defaults.js";

const IMAGE_SAVERS: ReadonlySet<string> = new Set(["SaveImage", "PreviewImage", "ext saveImageLazy"]);

/**
 * Refuses a graph from a file of unknown origin where a node that the picture needs would reach the network. What nodes
 * write stays in the output folder, which for this is a temporary one. Fails with graph.invalid and graph.unknown-class.
 */
export function refuseActing(graph: Graph, nodeId: string): void {
  const definitions = findDefinitions(graph, defaultRegistry);
  const saver = definitions.get(nodeId);
  if (saver === undefined)
    throw refusal(`the receipt names node ${JSON.stringify(nodeId)}, which the graph does not have`);
  if (!IMAGE_SAVERS.has(saver.key)) throw refusal(`${label(nodeId, saver.key)} saves no images`);
  for (const id of needed(graph, nodeId)) {
    const { key, reachesNetwork } = definitions.get(id)!;
    if (reachesNetwork) throw refusal(`${label(id, key)} reaches the network`);
  }
}

const label = (nodeId: string, node: string) => where({ nodeId, node }).slice(0, -2);

const refusal = (why: string) =>
  new LatentkitError("graph.invalid", `The graph in the file is not rendered again: ${why}.`);

/** All nodes that may run, those of lazy branches included. */
function needed(graph: Graph, nodeId: string): Set<string> {
  const found = new Set<string>();
  const queue = [nodeId];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    const { inputs } = graph.prompt[id] as { inputs?: unknown };
    for (const value of isPlainObject(inputs) ? Object.values(inputs) : []) {
      const source: unknown = Array.isArray(value) ? value[0] : undefined;
      if (typeof source === "string" && Object.hasOwn(graph.prompt, source)) queue.push(source);
    }
  }
  return found;
}
