import { LatentkitError } from "../../base/errors.js";
import { findDefinition, type Graph } from "../../graph/parse.js";
import { findRoots } from "../../graph/roots.js";
import { isPlainObject } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { Registry } from "../../nodes/registry.js";
import { placeholders } from "./fill.js";
import { neededBy } from "./needed.js";

/** A placeholder without a value. */
export interface Unfilled {
  readonly key: string;
  readonly nodeId: string;
  readonly input: string;
  /** One sentence. */
  readonly message: string;
}

/**
 * Returns which placeholders of the nodes that run stay as they are when these keys have values, each once. Where the
 * registry does not know a class, every node counts as one that runs. Fails as findRoots.
 */
export function createUnfilled(
  graph: Graph,
  { registry, targets }: { readonly registry: Registry; readonly targets?: readonly string[] },
): (keys: ReadonlySet<string>) => Unfilled[] {
  const marks = marksOf(graph, registry, targets);
  return (keys) => {
    const unfilled = new Map<string, Unfilled>();
    for (const { key, nodeId, input } of marks) {
      if (keys.has(key) || keys.has(`${nodeId}.${input}`) || unfilled.has(key)) continue;
      const message = `Node ${nodeId}, input "${input}": no value is given for {{${key}}}; set ${key}, or set it to {{${key}}} to keep these characters.`;
      unfilled.set(key, { key, nodeId, input, message });
    }
    return [...unfilled.values()];
  };
}

export const unfilledError = ({ nodeId, input, message }: Unfilled): LatentkitError =>
  new LatentkitError("input.missing", message, { nodeId, input });

function marksOf(
  graph: Graph,
  registry: Registry,
  targets: readonly string[] | undefined,
): Omit<Unfilled, "message">[] {
  const marks: Omit<Unfilled, "message">[] = [];
  for (const nodeId of graph.ids) {
    const node = graph.prompt[nodeId] as { inputs?: unknown };
    if (placeholders(node).size === 0) continue;
    const { inputs } = node;
    for (const [input, value] of isPlainObject(inputs) ? Object.entries(inputs) : []) {
      for (const key of placeholders(value)) marks.push({ key, nodeId, input });
    }
  }
  // most graphs have none
  if (marks.length === 0) return marks;
  const running = neededBy(graph, rootsOf(graph, registry, targets));
  return marks.filter(({ nodeId }) => running.has(nodeId));
}

function rootsOf(graph: Graph, registry: Registry, targets: readonly string[] | undefined): readonly string[] {
  const definitions = new Map<string, NodeDefinition>();
  for (const id of graph.ids) {
    const { class_type } = graph.prompt[id] as { class_type?: unknown };
    const definition = findDefinition(graph, String(class_type), registry);
    if (definition === undefined) return targets ?? graph.ids;
    definitions.set(id, definition);
  }
  return findRoots(graph, definitions, { targets });
}
