import { describe, LatentkitError } from "../base/errors.js";
import { findDefinition, findDefinitions, type Graph } from "../graph/parse.js";
import type { RunSurroundings } from "../graph/surroundings.js";
import { requireSharp } from "../io/pictures/sharp.js";
import type { Registry } from "../nodes/registry.js";
import { fillGraph } from "./fill/fill.js";
import type { Job } from "./job.js";
import { redactMetadata } from "./redact.js";
import { refuseInvalid } from "./refuse-invalid.js";

/**
 * Refuses a graph and a job that would fail every item of a batch: unknown classes, keys of `set` and `redact` that name
 * nothing, outputs that cannot be computed whatever an item sets. `keys`: those that items may set; undefined: any.
 */
export function refuseWrong(graph: Graph, job: Job, surroundings: RunSurroundings, keys?: readonly string[]): void {
  refuseUnwritable(job);
  refuseInvalid(graph, refuseUnknown(graph, job, surroundings.registry), job, surroundings, keys);
}

/** Fails with picture.needs-sharp where sharp would have to write the pictures, and is missing. */
export function refuseUnwritable({ format: { type = "png" } = {} }: Job): void {
  if (type !== "png") requireSharp(`Writing ${type} files`);
}

/** Refuses unknown classes and keys alone. Returns the graph with the values that all items share. */
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
