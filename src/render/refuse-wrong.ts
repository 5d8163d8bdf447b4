import { describe, LatentkitError } from "../errors.js";
import { findDefinition, findDefinitions, type Graph } from "../graph/parse.js";
import type { Registry } from "../nodes/registry.js";
import { fillGraph } from "./fill.js";
import { redactMetadata } from "./redact.js";

/** What every item of a batch has in common. */
export interface Shared {
  readonly registry: Registry;
  readonly set?: Readonly<Record<string, unknown>>;
  readonly redact?: readonly string[];
}

/** Refuses what would fail every item: unknown classes, keys of `set` and `redact` that name nothing. */
export function refuseWrong(graph: Graph, { registry, set = {}, redact = [] }: Shared): void {
  findDefinitions(graph, registry);
  const inputsOf = (type: string) => findDefinition(graph, type, registry)?.inputs;
  const prompt = fillGraph(graph.prompt, set, inputsOf);
  redactMetadata({ prompt, extraPnginfo: undefined }, redact, inputsOf);
}

/** Fails with graph.unknown-target. */
export function refuseTargets({ ids }: Graph, targets: readonly string[] | undefined): void {
  const unknown = targets?.find((target) => !ids.includes(target));
  if (unknown === undefined) return;
  const message = `targets: expected ids of the graph's nodes, received ${describe(unknown)}.`;
  throw new LatentkitError("graph.unknown-target", message, { received: describe(unknown) });
}
