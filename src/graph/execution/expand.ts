import { describe, LatentkitError } from "../../errors.js";
import { isPlainObject, keysInOrder } from "../../io/json-lossless.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import type { Entry } from "../memory/cache.js";
import { findDefinition, type Graph } from "../parse.js";
import { type PreparedNode, prepareUnchecked } from "../prepared.js";
import type { Answer } from "./calls.js";

/** A value of an expanded node: at hand, or to come from a node of the expansion. */
type Promised = { readonly value: unknown } | { readonly source: string; readonly slot: number };

/** What stands in for a node that answered with a graph. */
export interface Expansion {
  readonly nodes: readonly PreparedNode[];
  /** By call, then by output. */
  readonly promised: readonly (readonly Promised[])[];
}

/**
 * Makes nodes of the graphs in a node's answers. Key k of the graph of call i becomes the id "node.i.0.k"; links in
 * the graphs and in the results may name these keys or nodes outside.
 */
export function expandNode(
  node: PreparedNode,
  answers: readonly Answer[],
  around: { graph: Graph; registry: Registry; place: ChoiceContext; exists: (id: string) => boolean },
): Expansion {
  const nodes: PreparedNode[] = [];
  const promised = answers.map(({ result, expand = {} }, call) => {
    const inner = (key: string) => `${node.id}.${call}.0.${key}`;
    const isKey = (key: unknown): key is string => typeof key === "string" && Object.hasOwn(expand, key);
    const isLink = (value: unknown): value is [string, number] =>
      Array.isArray(value) && value.length === 2 && isKey(value[0]) && Number.isInteger(value[1]);
    for (const key of keysInOrder(expand)) {
      const raw = expand[key];
      if (!isPlainObject(raw) || typeof raw.class_type !== "string") throw badExpansion(node, key, raw);
      const definition = findDefinition(around.graph, raw.class_type, around.registry);
      if (definition === undefined) throw badExpansion(node, key, raw.class_type);
      const given = isPlainObject(raw.inputs) ? raw.inputs : {};
      const inputs = Object.fromEntries(
        Object.entries(given).map(([input, value]) => [input, isLink(value) ? [inner(value[0]), value[1]] : value]),
      );
      const exists = (id: string) => isKey(id.slice(inner("").length)) || around.exists(id);
      const source = { id: inner(key), displayId: node.displayId, definition, inputs };
      nodes.push(prepareUnchecked(source, around.place, exists));
    }
    return result.map((value): Promised => (isLink(value) ? { source: inner(value[0]), slot: value[1] } : { value }));
  });
  return { nodes, promised };
}

/** Nodes whose values a node's own are taken from, once for each. */
export const sourcesIn = ({ promised }: Expansion): string[] =>
  promised.flat().flatMap((slot) => ("source" in slot ? [slot.source] : []));

/** Values of the outputs of a node that a graph stood in for: of all its calls, list outputs opened. */
export function expandedOutputs(
  { definition }: PreparedNode,
  promised: Expansion["promised"],
  resultOf: (id: string) => Entry,
): unknown[][] {
  const answers = promised.map((slots) =>
    slots.map((slot) => ("value" in slot ? [slot.value] : (resultOf(slot.source).outputs[slot.slot] ?? [undefined]))),
  );
  return definition.outputs.map(({ list }, slot) =>
    answers.flatMap((lists) => {
      const values = lists[slot] ?? [undefined];
      const isWhole = list && values.length === 1 && Array.isArray(values[0]);
      return isWhole ? (values[0] as unknown[]) : [...values];
    }),
  );
}

function badExpansion({ id, definition }: PreparedNode, key: string, received: unknown): LatentkitError {
  const what = `expected node ${key} of its expansion to have a known class_type, received ${describe(received)}`;
  return new LatentkitError("graph.unknown-class", `${definition.key}: ${what}.`, { nodeId: id, node: definition.key });
}
