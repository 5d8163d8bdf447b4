import type { LatentkitError } from "../../base/errors.js";
import { findDefinition, type Graph } from "../../graph/parse.js";
import type { Registry } from "../../nodes/registry.js";
import { inputsOfKey } from "../fill/fill.js";
import { createUnfilled, unfilledError } from "../fill/unfilled.js";
import type { ItemValues } from "../items/item.js";
import { checkFields } from "./names.js";

/** Facts of a batch's items that are known before they are read. */
export interface KnownKeys {
  /** Keys that each of them sets, where they are known. */
  readonly keys?: readonly string[];
  /** Keys that any of them may set, where they are known. */
  readonly settable?: readonly string[];
  /** Fields of the name template that items have beside, where they are known. */
  readonly fields?: readonly string[];
}

interface Common {
  readonly registry: Registry;
  readonly targets?: readonly string[];
  readonly set?: ItemValues;
  readonly setup?: string;
}

/**
 * Finds the fault of an item that follows from its keys alone: a placeholder that nothing fills. Fails at once where it
 * is every item's fault, as far as their keys are known: with input.missing, and with usage.invalid for a field of the
 * name template that no item can have.
 */
export function createFaults(
  graph: Graph,
  { registry, targets, set = {}, setup }: Common,
  name: string | undefined,
  { keys, fields }: Pick<KnownKeys, "keys" | "fields">,
): (values: ItemValues) => LatentkitError | undefined {
  const shared = Object.keys(set);
  if (name !== undefined && fields !== undefined) {
    const definitionOf = (type: string) => findDefinition(graph, type, registry);
    const allKeys = new Set([...shared, ...(keys ?? []), ...fields]);
    // a setup's nodes may have inputs that nobody knows here
    const isNode = (key: string) => setup !== undefined && graph.ids.some((id) => key.startsWith(`${id}.`));
    const isInput = (key: string) => !("reason" in inputsOfKey(graph.prompt, key, definitionOf));
    checkFields(name, graph.prompt, (key) => allKeys.has(key) || (keys === undefined && (isNode(key) || isInput(key))));
  }
  const unfilled = createUnfilled(graph, { registry, targets });
  const faultOf = (names: readonly string[]) => {
    const [first] = unfilled(new Set([...shared, ...names]));
    return first && unfilledError(first);
  };
  const common = keys && faultOf(keys);
  if (common !== undefined) throw common;
  // most items have the keys of the one before
  let last: { readonly keys: string; readonly fault: LatentkitError | undefined } | undefined;
  return (values) => {
    const names = Object.keys(values);
    const joined = names.join("\0");
    if (last?.keys !== joined) last = { keys: joined, fault: faultOf(names) };
    return last.fault;
  };
}
