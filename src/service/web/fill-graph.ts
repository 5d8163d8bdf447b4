import { isUtf8 } from "node:buffer";
import { LatentkitError } from "../../base/errors.js";
import { isPlainObject, parseJson, printJson } from "../../io/json/lossless.js";
import { defaultRegistry } from "../../render/defaults.js";
import { fillWorkflow } from "../agent/fill-workflow.js";

// decision 299
/**
 * The body of a job of the Comfy API, as JSON with every digit: the graph of `{ graph, values }` with its values put in,
 * each under its key in `set`. Throws as `fillWorkflow` does.
 */
export function filledJob(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new LatentkitError("usage.invalid", "The body: expected UTF-8.");
  const body = parseJson(new TextDecoder().decode(bytes), { what: "The body" });
  if (!isPlainObject(body) || !isPlainObject(body.graph) || !isPlainObject(body.values)) {
    throw new LatentkitError("usage.invalid", "The body: expected an object with the objects graph and values.");
  }
  return printJson({ workflow: fillWorkflow(body.graph, body.values, { registry: defaultRegistry }) });
}
