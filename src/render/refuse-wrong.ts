import { resolve } from "node:path";
import { describe, LatentkitError } from "../base/errors.js";
import type { Job } from "../graph/job.js";
import { findDefinition, findDefinitions, type Graph, inputsOf } from "../graph/parse.js";
import { linkedNodes, type PreparedNode } from "../graph/prepared.js";
import type { Surroundings } from "../graph/surroundings.js";
import { findRoots, neededBy, withDependents } from "../graph/topology.js";
import { checkGraph, validationError } from "../graph/validate.js";
import type { GraphError, NodeErrors } from "../graph/validation/graph-error.js";
import { requireSharp } from "../io/pictures/sharp.js";
import type { NodeDefinition } from "../nodes/define.js";
import type { Registry } from "../nodes/registry.js";
import { fillGraph } from "./fill/fill.js";
import { placeholders } from "./fill/keys.js";
import { redactMetadata } from "./redact.js";

/**
 * Refuses a graph and a job that would fail every item of a batch: unknown classes, keys of `set` and `redact` that name
 * nothing, outputs that cannot be computed with any item. `keys`: those that items may set; undefined: any.
 */
export function refuseWrong(graph: Graph, job: Job, surroundings: Surroundings, keys?: readonly string[]): void {
  refuseUnwritable(job);
  refuseInvalid(graph, refuseUnknown(graph, job, surroundings.registry), job, surroundings, keys);
}

/** Fails with picture.needs-sharp if sharp would have to write the pictures, and is missing. */
export function refuseUnwritable({ format: { type = "png" } = {} }: Job): void {
  if (type !== "png") requireSharp(`Writing ${type} files`);
}

/** Refuses only unknown classes and keys. Returns the graph with the values that all items share. */
export function refuseUnknown(
  graph: Graph,
  { set = {}, redact = [] }: Job,
  registry: Registry,
): Record<string, unknown> {
  findDefinitions(graph, registry);
  const definitionOf = (type: string) => findDefinition(graph, type, registry);
  const prompt = fillGraph(graph.prompt, set, definitionOf);
  redactMetadata({ prompt, extraPnginfo: undefined }, redact, definitionOf);
  return prompt;
}

/** Fails with graph.unknown-target. */
export function refuseTargets({ ids }: Graph, targets: readonly string[] | undefined): void {
  const unknown = targets?.find((target) => !ids.includes(target));
  if (unknown === undefined) return;
  const message = `targets: expected ids of the graph's nodes, received ${describe(unknown)}.`;
  throw new LatentkitError("graph.unknown-target", message, { received: describe(unknown) });
}

/** Whether an item may change an input of a node. */
type MayChange = (nodeId: string, input: string) => boolean;

/**
 * Fails as validation does if an output cannot be computed with any values of items, or with `partial` if none
 * can. `prompt`: the graph with all values that items share; `keys`: those that items may set, undefined: any. Fails
 * as findDefinitions and findRoots, too.
 */
function refuseInvalid(
  graph: Graph,
  prompt: Readonly<Record<string, unknown>>,
  job: Job,
  surroundings: Surroundings,
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
  // links that an item may change do not count
  const fixed = [...prepared].map(([id, { links }]): [string, string[]] => [
    id,
    links.filter(({ input }) => !mayChange(id, input)).map(({ source }) => source),
  ]);
  const bad = withDependents(Object.keys(certain), fixed);
  const isRefused = job.partial === true ? roots.every((id) => bad.has(id)) : roots.some((id) => bad.has(id));
  if (isRefused) throw validationError({ ...validation, nodeErrors: certain });
}

function createMayChange({ prompt }: Graph, keys: readonly string[] | undefined): MayChange {
  if (keys === undefined) return () => true;
  const settable = new Set(keys);
  return (nodeId, input) => {
    if (settable.has(`${nodeId}.${input}`)) return true;
    const inputs = inputsOf(prompt, nodeId) ?? {};
    const value = Object.hasOwn(inputs, input) ? inputs[input] : undefined;
    return [...placeholders(value)].some((key) => settable.has(key));
  };
}

/** The errors that stay with any values of items. */
function certainErrors(
  nodeErrors: Readonly<Record<string, NodeErrors>>,
  prepared: ReadonlyMap<string, PreparedNode>,
  definitions: ReadonlyMap<string, NodeDefinition>,
  mayChange: MayChange,
): Record<string, NodeErrors> {
  const mayChangeNode = (id: string): boolean =>
    Object.keys(definitions.get(id)!.inputs).some((input) => mayChange(id, input));
  const changing = withDependents([...prepared.keys()].filter(mayChangeNode), linkedNodes(prepared));
  const isCertain = (nodeId: string, { code, input, extra_info }: GraphError): boolean => {
    const definition = definitions.get(nodeId)!;
    if (code === "network.forbidden") return true;
    if (code === "graph.cycle") {
      const cycle = new Set(extra_info.cycle as readonly string[]);
      const holds = ({ id, links }: PreparedNode) =>
        links.every((link) => !cycle.has(link.source) || !mayChange(id, link.input));
      return [...cycle].every((id) => holds(prepared.get(id)!));
    }
    // what arrives through a link depends on the nodes behind it
    if (prepared.get(nodeId)!.links.some((link) => link.input === input)) return !changing.has(nodeId);
    // the effect of one input may depend on the others
    const isOwn = input === undefined || definition.validate !== undefined;
    return isOwn ? !mayChangeNode(nodeId) : !mayChange(nodeId, input);
  };
  const certain: Record<string, NodeErrors> = {};
  for (const [nodeId, one] of Object.entries(nodeErrors)) {
    const errors = one.errors.filter((error) => isCertain(nodeId, error));
    if (errors.length > 0) certain[nodeId] = { ...one, errors };
  }
  return certain;
}

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
    for (const [input, value] of Object.entries(inputsOf(graph.prompt, nodeId) ?? {})) {
      for (const key of placeholders(value)) marks.push({ key, nodeId, input });
    }
  }
  // most graphs have no placeholder
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
