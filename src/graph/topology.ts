import { LatentkitError } from "../base/errors.js";
import { suggest } from "../base/suggest.js";
import type { NodeDefinition } from "../nodes/define.js";
import type { Registry } from "../nodes/registry.js";
import type { Job } from "./job.js";
import { findDefinition, type Graph, inputsOf, type Prompt, unknownNode, withoutKeys } from "./parse.js";
import { leftOutNote } from "./unknown-classes.js";

/**
 * Ids of the nodes that a run computes: the targets, else the output nodes, else those that write files or have a UI result.
 * Fails with graph.unknown-target or graph.no-outputs.
 */
export function findRoots(
  graph: Graph,
  definitions: ReadonlyMap<string, NodeDefinition>,
  { targets, partialExecutionTargets }: Pick<Job, "targets" | "partialExecutionTargets">,
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

/** An order in which nodes can be computed, and the cycles that keep others out of it. */
export interface Cycles {
  /** Nodes that are part of a cycle or need one. */
  readonly stuck: ReadonlySet<string>;
  /** All other nodes, each after its sources. */
  readonly order: readonly string[];
  /** Nodes of each cycle in the direction of the data, lowest id first. */
  readonly cycles: readonly (readonly string[])[];
}

/** Finds cycles in time linear in nodes and links, at any depth. `sources` holds the linked nodes of every node. */
export function findCycles(sources: ReadonlyMap<string, readonly string[]>): Cycles {
  const waiting = new Map<string, number>();
  for (const [id, from] of sources) waiting.set(id, from.length);
  const consumers = consumersOf(sources);
  const order = [...waiting.keys()].filter((id) => waiting.get(id) === 0);
  for (const id of order) {
    waiting.delete(id);
    for (const consumer of consumers.get(id) ?? []) {
      const left = waiting.get(consumer)! - 1;
      waiting.set(consumer, left);
      if (left === 0) order.push(consumer);
    }
  }
  const stuck = new Set(waiting.keys());
  return { stuck, order, cycles: nameCycles(stuck, sources) };
}

function consumersOf(sources: Iterable<readonly [id: string, from: readonly string[]]>): Map<string, string[]> {
  const consumers = new Map<string, string[]>();
  for (const [id, from] of sources) {
    for (const source of from) {
      const list = consumers.get(source);
      if (list === undefined) consumers.set(source, [id]);
      else list.push(id);
    }
  }
  return consumers;
}

/** These nodes and all that need them. `sources` holds the linked nodes of every node. */
export function withDependents(
  ids: Iterable<string>,
  sources: Iterable<readonly [id: string, from: readonly string[]]>,
): Set<string> {
  const dependents = new Set(ids);
  if (dependents.size === 0) return dependents;
  const consumers = consumersOf(sources);
  for (const id of dependents) for (const consumer of consumers.get(id) ?? []) dependents.add(consumer);
  return dependents;
}

function nameCycles(stuck: ReadonlySet<string>, sources: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const walkOf = new Map<string, number>();
  let walk = 0;
  for (const start of stuck) {
    walk++;
    const path: string[] = [];
    let id = start;
    while (!walkOf.has(id)) {
      walkOf.set(id, walk);
      path.push(id);
      // every stuck node waits for a stuck node
      id = sources.get(id)!.find((source) => stuck.has(source))!;
    }
    // a walk that ends on an earlier one reaches a cycle already named
    if (walkOf.get(id) === walk) cycles.push(lowestFirst(path.slice(path.indexOf(id)).reverse()));
  }
  return cycles;
}

function lowestFirst(cycle: string[]): string[] {
  let lowest = 0;
  for (let i = 1; i < cycle.length; i++) {
    if (cycle[i]!.localeCompare(cycle[lowest]!, "en", { numeric: true }) < 0) lowest = i;
  }
  return [...cycle.slice(lowest), ...cycle.slice(0, lowest)];
}

// An output that no item can repair refuses the whole batch; links count, and so do inputs of nodes that check
// themselves.
/** All nodes that may run for these, those of lazy branches included. */
export function neededBy({ prompt }: { readonly prompt: Prompt }, roots: readonly string[]): Set<string> {
  const needed = new Set<string>();
  const queue = roots.filter((id) => Object.hasOwn(prompt, id));
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (needed.has(id)) continue;
    needed.add(id);
    queue.push(...sourcesOf(prompt, id));
  }
  return needed;
}

/** Nodes of a graph that a node's inputs link to. */
function sourcesOf(prompt: Prompt, id: string): string[] {
  const sources = Object.values(inputsOf(prompt, id) ?? {}).map((value): unknown => Array.isArray(value) && value[0]);
  return sources.filter((source) => typeof source === "string").filter((source) => Object.hasOwn(prompt, source));
}

/**
 * A graph without the nodes of unknown classes that its targets do not need, and without what reads them, with a note.
 * Without targets, or if one of them needs such a node, it is the graph itself.
 */
export function withoutUnknown(graph: Graph, registry: Registry, targets: readonly string[] | undefined): Graph {
  if (targets === undefined) return graph;
  const { prompt, ids } = graph;
  const unknown = ids
    .map((id) => unknownNode(id, prompt[id] as Prompt))
    .filter(({ classType: type }) => typeof type === "string" && findDefinition(graph, type, registry) === undefined);
  const needed = neededBy(graph, targets);
  if (unknown.length === 0 || unknown.some(({ id }) => needed.has(id))) return graph;
  const sources = ids.map((id) => [id, sourcesOf(prompt, id)] as const);
  const left = withDependents(
    unknown.map(({ id }) => id),
    sources,
  );
  return {
    ...graph,
    prompt: withoutKeys(prompt, left),
    ids: ids.filter((id) => !left.has(id)),
    notes: [...graph.notes, leftOutNote(unknown)],
  };
}
