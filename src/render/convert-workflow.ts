import { describe, LatentkitError } from "../base/errors.js";
import { checkOptions, FUNCTION, type OptionRules, REGISTRY, VALUES } from "../base/options.js";
import { refuseNonFinite } from "../graph/numbers.js";
import { aliasesOf, type ClassAliases, findDefinition, withNotes } from "../graph/parse.js";
import { isEditorFile, unwrapGraph } from "../graph/unwrap-graph.js";
import { type ApiNode, toApiGraph } from "../graph/workflow/convert.js";
import { isPlainObject, parseJson } from "../io/json/lossless.js";
import { registry as builtIns } from "../nodes/index.js";
import type { Registry } from "../nodes/registry.js";

/** Options of `convertWorkflow`. */
export interface ConvertOptions {
  /** Node classes, whose inputs tell which value belongs to which input. All nodes where absent. */
  readonly registry?: Registry;
  /** Other names of node classes: prefix to prefix, or whole key to whole key. */
  readonly classAliases?: ClassAliases;
  /** Time that %date:…% in a prefix of file names stands for. */
  readonly clock?: () => Date;
  /** Receives a sentence about each node that is left out, or whose prefix names nothing: of the latter with its id. */
  readonly onWarning?: (message: string, nodeId?: string) => void;
}

const RULES: OptionRules<ConvertOptions> = {
  registry: REGISTRY,
  classAliases: VALUES,
  clock: FUNCTION,
  onWarning: FUNCTION,
};

/**
 * Converts a workflow as the editor saves it, an object or JSON text, to a graph in API format, as the editor does when
 * it queues one; returns a graph that is in API format already as it is. `printGraphText` writes it with every digit;
 * JSON.stringify throws for whole numbers beyond 2^53, which are bigints. Throws graph.invalid, which names node, type and
 * reason, graph.unknown-class, which names all classes, and graph.invalid-json.
 */
export function convertWorkflow(workflow: string | object, options: ConvertOptions = {}): Record<string, unknown> {
  checkOptions("convertWorkflow", options, RULES);
  const object = typeof workflow === "string" ? parseJson(workflow, { what: "Workflow", nonFinite: true }) : workflow;
  if (isPlainObject(object)) {
    const graph = unwrapGraph(apiGraph(object, options));
    refuseNonFinite(graph);
    return graph;
  }
  throw new LatentkitError("graph.invalid", `Workflow: expected an object, received ${describe(object)}.`);
}

/** A workflow of the editor in API format, anything else as it is: who reads it as a graph says what is wrong. */
export function apiGraph<Graph>(graph: Graph, options: ConvertOptions = {}): Graph | Record<string, ApiNode> {
  if (!isPlainObject(graph)) return graph;
  const workflow = unwrapGraph(graph);
  if (!isEditorFile(workflow)) return graph;
  const { registry = builtIns, classAliases = {}, clock, onWarning } = options;
  const aliases = { classOf: aliasesOf(classAliases) };
  const notes: string[] = [];
  const converted = toApiGraph(workflow, {
    classes: (type) => findDefinition(aliases, type, registry),
    registry,
    now: clock?.() ?? new Date(),
    onWarning: (message, nodeId) => {
      // those of nodes that are in the graph are found again where it runs
      if (nodeId === undefined) notes.push(message);
      onWarning?.(message, nodeId);
    },
  });
  return withNotes(converted, notes);
}
