import { LatentkitError, nodeName } from "../../base/errors.js";
import { findDefinitions, type Graph } from "../../graph/parse.js";
import { isPlainObject } from "../../io/json/lossless.js";
import { type NodeDefinition, needsNetwork } from "../../nodes/define.js";
import { defaultRegistry } from "../defaults.js";
import { neededBy } from "../fill/needed.js";

const savesImages = ({ writesFiles, inputs }: NodeDefinition): boolean =>
  writesFiles && Object.hasOwn(inputs, "images");

/**
 * Refuses a graph from a file of unknown origin where a node that the picture needs would reach the network. What nodes
 * write stays in the output folder, which for this is a temporary one. Fails with graph.invalid and graph.unknown-class.
 */
export function refuseActing(graph: Graph, nodeId: string): void {
  const definitions = findDefinitions(graph, defaultRegistry);
  const saver = definitions.get(nodeId);
  if (saver === undefined)
    throw refusal(`the receipt names node ${JSON.stringify(nodeId)}, which the graph does not have`);
  if (!savesImages(saver)) throw refusal(`${label(nodeId, saver.key)} saves no images`);
  for (const id of neededBy(graph, [nodeId])) {
    const definition = definitions.get(id)!;
    const { inputs } = graph.prompt[id] as { inputs?: unknown };
    if (needsNetwork(definition, isPlainObject(inputs) ? inputs : {}))
      throw refusal(`${label(id, definition.key)} reaches the network`);
  }
}

const label = (nodeId: string, node: string) => nodeName({ nodeId, node });

const refusal = (why: string) =>
  new LatentkitError("graph.invalid", `The graph in the file is not rendered again: ${why}.`);
