import { titleOf } from "../../graph/unknown-classes.js";
import { isPlainObject } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import { placeholderKeys } from "./placeholders.js";

/** Longer titles are notes, not names. */
const MAX_TITLE_CHARACTERS = 200;

/** The one input of a primitive. */
export const PRIMITIVE_INPUT = "value";
const PRIMITIVE_TYPES: ReadonlySet<string> = new Set(["INT", "FLOAT", "STRING", "BOOLEAN", "*"]);

type Graph = Readonly<Record<string, unknown>>;
type DefinitionOf = (classType: string) => Pick<NodeDefinition, "inputs" | "displayName"> | undefined;

/**
 * Ids of the primitives that carry a title of their author, by title. A primitive is a node whose one input is `value`,
 * a number, a text or a boolean: PrimitiveInt, PrimitiveString and so on. It has no name where another node computes its
 * value or a placeholder stands in it.
 */
export function titledPrimitives(graph: Graph, definitionOf: DefinitionOf): Map<string, string[]> {
  const nodes = new Map<string, string[]>();
  for (const [nodeId, node] of Object.entries(graph)) {
    const title = isPlainObject(node) ? nameOf(node, definitionOf) : undefined;
    if (title === undefined) continue;
    const same = nodes.get(title);
    if (same === undefined) nodes.set(title, [nodeId]);
    else same.push(nodeId);
  }
  return nodes;
}

/** Ids of the primitives of that title. */
export function nodesTitled(graph: Graph, title: string, definitionOf: DefinitionOf): string[] {
  const isTitled = (node: unknown) => isPlainObject(node) && titleOf(node)?.trim() === title;
  return Object.entries(graph)
    .filter(([, node]) => isTitled(node) && nameOf(node as Graph, definitionOf) === title)
    .map(([nodeId]) => nodeId);
}

/** Title that the author of a graph gave a node; undefined where it is the name of its class. */
export function ownTitle(node: Graph, definition: Pick<NodeDefinition, "displayName"> | undefined): string | undefined {
  const title = titleOf(node)?.trim();
  const isName = title === node.class_type || title === definition?.displayName;
  return title === undefined || isName || title.length > MAX_TITLE_CHARACTERS ? undefined : title;
}

function nameOf(node: Graph, definitionOf: DefinitionOf): string | undefined {
  const definition = definitionOf(String(node.class_type));
  const names = Object.keys(definition?.inputs ?? {});
  if (names.length !== 1 || names[0] !== PRIMITIVE_INPUT) return undefined;
  if (!PRIMITIVE_TYPES.has(definition!.inputs[PRIMITIVE_INPUT]!.type)) return undefined;
  const value = isPlainObject(node.inputs) ? node.inputs[PRIMITIVE_INPUT] : undefined;
  if (value === undefined || Array.isArray(value)) return undefined;
  if (typeof value === "string" && placeholderKeys(value).length > 0) return undefined;
  return ownTitle(node, definition);
}
