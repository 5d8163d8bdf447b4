import { describe, LatentkitError } from "../errors.js";
import { findDefinition, findDefinitions, type Graph } from "../graph/parse.js";
import { fillGraph } from "./fill/fill.js";
import { redactMetadata } from "./redact.js";
import { type Common, refuseInvalid } from "./refuse-invalid.js";

/** What every item of a batch has in common. */
export interface Shared extends Common {
  readonly set?: Readonly<Record<string, unknown>>;
  readonly redact?: readonly string[];
}

/**
 * Refuses what would fail every item: unknown classes, keys of `set` and `redact` that name nothing, outputs that cannot
 * be computed whatever an item sets.
 */
export function refuseWrong(graph: Graph, shared: Shared): void {
  refuseInvalid(graph, refuseUnknown(graph, shared), shared);
}

/** The first two of these. Returns the graph with the values that all items share. */
export function refuseUnknown(
  graph: Graph,
  { registry, set = {}, redact = [] }: Pick<Shared, "registry" | "set" | "redact">,
): Record<string, unknown> {
  findDefinitions(graph, registry);
  const inputsOf = (type: string) => findDefinition(graph, type, registry)?.inputs;
  const prompt = fillGraph(graph.prompt, set, inputsOf);
  redactMetadata({ prompt, extraPnginfo: undefined }, redact, inputsOf);
  return prompt;
}

/** Fails with graph.unknown-target. */
export function refuseTargets({ ids }: Graph, targets: readonly string[] | undefined): void {
  const unknown = targets?.find((target) => !ids.includes(target));
  if (unknown === undefined) return;
  const message = `targets: expected ids of the graph's nodes, received ${describe(unknown)}.`;
  throw new LatentkitError("graph.unknown-target", message, { received: describe(unknown) });
}
