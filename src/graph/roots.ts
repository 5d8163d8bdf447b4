import { LatentkitError, suggest } from "../base/errors.js";
import type { NodeDefinition } from "../nodes/define.js";
import type { ExecuteJob } from "./job.js";
import type { Graph } from "./parse.js";

/**
 * Ids of the nodes that a run computes: the targets, else the output nodes, else those that write files or have a UI result.
 * Fails with graph.unknown-target or graph.no-outputs.
 */
export function findRoots(
  graph: Graph,
  definitions: ReadonlyMap<string, NodeDefinition>,
  { targets, partialExecutionTargets }: Pick<ExecuteJob, "targets" | "partialExecutionTargets">,
): string[] {
  if (targets !== undefined) {
    for (const id of targets) if (!definitions.has(id)) throw unknownTarget(id, graph);
    if (targets.length > 0) return [...new Set(targets)];
  }
  const outputs = targets === undefined ? rootsOf(graph, definitions) : [];
  const roots =
    partialExecutionTargets === undefined || partialExecutionTargets === null
      ? outputs
      : [...new Set(partialExecutionTargets)].filter((id) => outputs.includes(id));
  if (roots.length > 0) return roots;
  throw new LatentkitError(
    "graph.no-outputs",
    "Graph: expected an output node (such as SaveImage) or a target, received neither.",
  );
}

function rootsOf(graph: Graph, definitions: ReadonlyMap<string, NodeDefinition>): string[] {
  const outputs = graph.ids.filter((id) => definitions.get(id)!.outputNode);
  if (outputs.length > 0) return outputs;
  return graph.ids.filter((id) => definitions.get(id)!.writesFiles || definitions.get(id)!.hasUi);
}

function unknownTarget(id: string, graph: Graph): LatentkitError {
  const { suggestion, hint } = suggest(String(id), graph.ids);
  const message = `Target: expected the id of a node of the graph, received ${JSON.stringify(id)}.${hint}`;
  return new LatentkitError("graph.unknown-target", message, { received: String(id), suggestion });
}
