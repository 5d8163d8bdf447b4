import { isUtf8 } from "node:buffer";
import { LatentkitError } from "../../base/errors.js";
import { findDefinition, parseGraph } from "../../graph/parse.js";
import { isPlainObject, parseJson, printJson } from "../../io/json/lossless.js";
import { defaultRegistry } from "../../render/defaults.js";
import { fillGraph } from "../../render/fill/fill.js";
import { parametersOf } from "../../render/schema/parameters.js";
import { fillsOf } from "../message.js";

// decision 299
/**
 * The body of a job of the Comfy API, as JSON with every digit: the graph of `{ graph, values }` with its values put in,
 * each under its key in `set`. Throws as `parseGraph` does, and usage.invalid for a value outside the graph's schema.
 */
export function filledJob(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new LatentkitError("usage.invalid", "The body: expected UTF-8.");
  const body = parseJson(new TextDecoder().decode(bytes), { what: "The body" });
  if (!isPlainObject(body) || !isPlainObject(body.graph) || !isPlainObject(body.values)) {
    throw new LatentkitError("usage.invalid", "The body: expected an object with the objects graph and values.");
  }
  const graph = parseGraph(body.graph);
  const fills = fillsOf(printJson(body.values), parametersOf(graph, { registry: defaultRegistry }));
  const filled = fillGraph(graph.prompt, fills, (type) => findDefinition(graph, type, defaultRegistry));
  return printJson({ workflow: filled });
}
