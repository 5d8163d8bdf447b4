import { resolve } from "node:path";
import { findDefinitions, type Graph } from "../graph/parse.js";
import type { PreparedNode } from "../graph/prepared.js";
import type { RunSurroundings } from "../graph/surroundings.js";
import { checkGraph } from "../graph/validate.js";
import type { GraphError, NodeErrors } from "../graph/validation/graph-error.js";
import { validationError } from "../graph/validation-error.js";
import { isPlainObject } from "../io/json/lossless.js";
import type { NodeDefinition } from "../nodes/define.js";
import { placeholders } from "./fill/fill.js";
import type { Job } from "./job.js";

/** Whether an item may change an input of a node. */
type MayChange = (nodeId: string, input: string) => boolean;

/**
 * Fails as validation does where an output cannot be computed whatever values items have, with `partial` where none
 * can. `prompt`: the graph with all values that items share; `keys`: those that items may set, undefined: any. Fails
 * as findDefinitions and findRoots, too.
 */
export function refuseInvalid(
  graph: Graph,
  prompt: Readonly<Record<string, unknown>>,
  job: Job,
  surroundings: RunSurroundings,
  keys: readonly string[] | undefined,
): void {
  const definitions = findDefinitions(graph, surroundings.registry);
  const filled = { ...graph, prompt: { ...prompt } };
  const inputDir = resolve(job.inputDir ?? "input");
  const checked = checkGraph(filled, definitions, { ...job, inputDir }, surroundings);
  const { validation, prepared, roots, leftOut } = checked;
  if (leftOut.length === 0) return;
  const mayChange = createMayChange(graph, keys);
  const certain = certainErrors(validation.nodeErrors, prepared, definitions, mayChange);
  const bad = neededBy(Object.keys(certain), prepared, mayChange);
  const isRefused = job.partial === true ? roots.every((id) => bad.has(id)) : roots.some((id) => bad.has(id));
  if (isRefused) throw validationError({ ...validation, nodeErrors: certain });
}

function createMayChange({ prompt }: Graph, keys: readonly string[] | undefined): MayChange {
  if (keys === undefined) return () => true;
  const settable = new Set(keys);
  return (nodeId, input) => {
    if (settable.has(`${nodeId}.${input}`)) return true;
    const { inputs } = prompt[nodeId] as { inputs?: unknown };
    const value = isPlainObject(inputs) && Object.hasOwn(inputs, input) ? inputs[input] : undefined;
    return [...placeholders(value)].some((key) => settable.has(key));
  };
}

/** The errors that stay, whatever items set. */
function certainErrors(
  nodeErrors: Readonly<Record<string, NodeErrors>>,
  prepared: ReadonlyMap<string, PreparedNode>,
  definitions: ReadonlyMap<string, NodeDefinition>,
  mayChange: MayChange,
): Record<string, NodeErrors> {
  const isCertain = (nodeId: string, { code, input, extra_info }: GraphError): boolean => {
    const definition = definitions.get(nodeId)!;
    if (code === "network.forbidden") return true;
    if (code === "graph.cycle") {
      const cycle = new Set(extra_info.cycle as readonly string[]);
      const holds = ({ id, links }: PreparedNode) =>
        links.every((link) => !cycle.has(link.source) || !mayChange(id, link.input));
      return [...cycle].every((id) => holds(prepared.get(id)!));
    }
    // what a node makes of one input may hang on the others
    const isOwn = input === undefined || definition.validate !== undefined;
    return isOwn ? !Object.keys(definition.inputs).some((name) => mayChange(nodeId, name)) : !mayChange(nodeId, input);
  };
  const certain: Record<string, NodeErrors> = {};
  for (const [nodeId, one] of Object.entries(nodeErrors)) {
    const errors = one.errors.filter((error) => isCertain(nodeId, error));
    if (errors.length > 0) certain[nodeId] = { ...one, errors };
  }
  return certain;
}

/** These nodes and all that need them by links which no item changes. */
function neededBy(
  ids: readonly string[],
  prepared: ReadonlyMap<string, PreparedNode>,
  mayChange: MayChange,
): ReadonlySet<string> {
  const bad = new Set(ids);
  const consumers = new Map<string, string[]>();
  for (const { id, links } of bad.size === 0 ? [] : prepared.values()) {
    for (const { source, input } of links) {
      if (mayChange(id, input)) continue;
      const list = consumers.get(source);
      if (list === undefined) consumers.set(source, [id]);
      else list.push(id);
    }
  }
  for (const id of bad) for (const consumer of consumers.get(id) ?? []) bad.add(consumer);
  return bad;
}
