import { describe, LatentkitError } from "../../base/errors.js";
import { isPlainObject, keysInOrder } from "../../io/json/lossless.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import type { Entry } from "../memory/cache.js";
import { findDefinition, type Graph } from "../parse.js";
import { type PreparedNode, prepareUnchecked } from "../prepared.js";
import type { CallResult } from "./calls.js";

/** An output of an expanded node: a value, or a link to a node of the expansion. */
type ExpandedOutput = { readonly value: unknown } | { readonly source: string; readonly slot: number };

/** Nodes that replace a node whose result is a graph. */
export interface Expansion {
  readonly nodes: readonly PreparedNode[];
  /** Outputs of the replaced node by call, then by slot. */
  readonly outputs: readonly (readonly ExpandedOutput[])[];
}

/**
 * Makes nodes of the graphs in a node's results. Key k of the graph of call i becomes the id "node.i.0.k"; links in the
 * graphs and in the results may name these keys or nodes outside.
 */
export function expandNode(
  node: PreparedNode,
  results: readonly CallResult[],
  surroundings: { graph: Graph; registry: Registry; choiceContext: ChoiceContext; exists: (id: string) => boolean },
): Expansion {
  const nodes: PreparedNode[] = [];
  const outputs = results.map(({ result, expand = {} }, call) => {
    const inner = (key: string) => `${node.id}.${call}.0.${key}`;
    const isKey = (key: unknown): key is string => typeof key === "string" && Object.hasOwn(expand, key);
    const isLink = (value: unknown): value is [string, number] =>
      Array.isArray(value) && value.length === 2 && isKey(value[0]) && Number.isInteger(value[1]);
    for (const key of keysInOrder(expand)) {
      const raw = expand[key];
      if (!isPlainObject(raw) || typeof raw.class_type !== "string") throw badExpansion(node, key, raw);
      const definition = findDefinition(surroundings.graph, raw.class_type, surroundings.registry);
      if (definition === undefined) throw badExpansion(node, key, raw.class_type);
      const rawInputs = isPlainObject(raw.inputs) ? raw.inputs : {};
      const inputs = Object.fromEntries(
        Object.entries(rawInputs).map(([input, value]) => [input, isLink(value) ? [inner(value[0]), value[1]] : value]),
      );
      const exists = (id: string) => isKey(id.slice(inner("").length)) || surroundings.exists(id);
      const source = { id: inner(key), displayId: node.displayId, definition, inputs };
      nodes.push(prepareUnchecked(source, surroundings.choiceContext, exists));
    }
    return result.map(
      (value): ExpandedOutput => (isLink(value) ? { source: inner(value[0]), slot: value[1] } : { value }),
    );
  });
  return { nodes, outputs };
}

/** Nodes of the expansion that the outputs link to, once for each link. */
export const sourcesIn = ({ outputs }: Expansion): string[] =>
  outputs.flat().flatMap((slot) => ("source" in slot ? [slot.source] : []));

/** Output values of an expanded node over all its calls; list outputs add their elements. */
export function expandedOutputs(
  { definition }: PreparedNode,
  outputs: Expansion["outputs"],
  resultOf: (id: string) => Entry,
): unknown[][] {
  const calls = outputs.map((slots) =>
    slots.map((slot) => ("value" in slot ? [slot.value] : (resultOf(slot.source).outputs[slot.slot] ?? [undefined]))),
  );
  return definition.outputs.map(({ list }, slot) =>
    calls.flatMap((lists) => {
      const values = lists[slot] ?? [undefined];
      const isWhole = list && values.length === 1 && Array.isArray(values[0]);
      return isWhole ? (values[0] as unknown[]) : [...values];
    }),
  );
}

function badExpansion({ id, definition }: PreparedNode, key: string, received: unknown): LatentkitError {
  const reason = `expected node ${key} of its expansion to have a known class_type, received ${describe(received)}`;
  return new LatentkitError("graph.unknown-class", `${definition.key}: ${reason}.`, {
    nodeId: id,
    node: definition.key,
  });
}
