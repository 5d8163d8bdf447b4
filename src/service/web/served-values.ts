import { findDefinition, type Graph } from "../../graph/parse.js";
import { isPlainObject, printJson } from "../../io/json/lossless.js";
import type { Registry } from "../../nodes/registry.js";
import { fillGraph, titleKeys } from "../../render/fill/fill.js";
import { placeholderKeys, replacePlaceholders } from "../../render/fill/placeholders.js";
import { PRIMITIVE_INPUT } from "../../render/fill/titled.js";

// decision 287
/**
 * Values of the named parameters with which a graph of the service becomes another graph, as texts; undefined where no
 * such values are found.
 */
export function servedValues(served: Graph, other: Graph, registry: Registry): Record<string, string> | undefined {
  if (served.ids.join() !== other.ids.join()) return undefined;
  const definitionOf = (type: string) => findDefinition(served, type, registry);
  const titles = titleKeys(served.prompt, definitionOf);
  const values = new Map<string, string>();
  for (const id of served.ids) {
    const inputs = inputsOf(other, id);
    for (const [name, value] of Object.entries(inputsOf(served, id))) {
      const isTitled = name === PRIMITIVE_INPUT && titles.has(id);
      const [key, text] = isTitled ? [titles.get(id)!, asText(inputs[name])] : (between(value, inputs[name]) ?? []);
      if (key !== undefined && text !== undefined && !values.has(key)) values.set(key, text);
    }
  }
  const found = Object.fromEntries(values);
  const filled = fillGraph({ ...served.prompt }, found, definitionOf);
  // whatever was read above, the graph that they give decides
  return printJson(filled) === printJson(other.prompt) ? found : undefined;
}

function inputsOf(graph: Graph, id: string): Readonly<Record<string, unknown>> {
  const node = graph.prompt[id];
  return isPlainObject(node) && isPlainObject(node.inputs) ? node.inputs : {};
}

/** Key of the one placeholder of a text, and what stands in its place. */
function between(template: unknown, value: unknown): [key: string, text: string] | undefined {
  const [key, second] = typeof template === "string" ? placeholderKeys(template) : [];
  const text = asText(value);
  if (typeof template !== "string" || key === undefined || second !== undefined || text === undefined) return undefined;
  let length = 0;
  const start = replacePlaceholders(template, (mark) => {
    length = mark.length;
    return "\u0000";
  }).indexOf("\u0000");
  const end = template.length - start - length;
  const isFilled = text.startsWith(template.slice(0, start)) && text.endsWith(template.slice(start + length));
  return isFilled && text.length >= start + end ? [key, text.slice(start, text.length - end)] : undefined;
}

/** A text, or a number or boolean as one; undefined for anything else. */
function asText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (value === undefined || value === null || Array.isArray(value) || isPlainObject(value)) return undefined;
  return printJson(value);
}
