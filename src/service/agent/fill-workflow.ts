import { describe, LatentkitError, suggest } from "../../base/errors.js";
import { type ClassAliases, findDefinition, parseGraph } from "../../graph/parse.js";
import { printJson } from "../../io/json/lossless.js";
import type { Registry } from "../../nodes/registry.js";
import { fillGraph } from "../../render/fill/fill.js";
import { parametersOf } from "../../render/schema/parameters.js";
import { fillsOf } from "./message.js";

/**
 * Returns a graph that came with its request with values put in, each under its key in `set`. Throws as `parseGraph` does,
 * and usage.invalid for a value outside the graph's schema and for a key that is none of its parameters.
 */
export function fillWorkflow(
  workflow: object,
  values: Record<string, unknown>,
  { registry, classAliases }: { registry: Registry; classAliases?: ClassAliases | undefined },
): object {
  const graph = parseGraph(workflow, { classAliases });
  const parameters = parametersOf(graph, { registry });
  const keys = new Set(parameters.map(({ key }) => key));
  const unknown = Object.keys(values).find((key) => !keys.has(key));
  if (unknown !== undefined) {
    const { suggestion, hint } = suggest(unknown, keys);
    const sentence = `${describe(unknown)} is not a parameter of the graph.${hint}`;
    throw new LatentkitError("usage.invalid", sentence, { suggestion });
  }
  const fills = fillsOf(printJson(values), parameters);
  return fillGraph(graph.prompt, fills, (type) => findDefinition(graph, type, registry));
}
