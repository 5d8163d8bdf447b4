import { describe, LatentkitError } from "../../base/errors.js";
import { hintOf, suggest } from "../../base/suggest.js";
import { type ClassAliases, findDefinition, parseGraph } from "../../graph/parse.js";
import { isPlainObject, parseJson } from "../../io/json/lossless.js";
import type { Registry } from "../../nodes/registry.js";
import { fillGraph } from "../../render/fill/fill.js";
import { type Parameter, parametersOf } from "../../render/schema/graph-schema.js";
import { mismatchOf } from "../../render/schema/property.js";

/** Lines of a session's pending events in front of a message. */
export const EVENT_LINES = /^(?:System event: [^\n]*\n)+/;

// A message fills placeholders and titled primitives with texts, numbers and booleans; a list could pose as a link.
// decisions: A misspelt name is an error
/**
 * Values for a graph's named parameters: a message that is a JSON object, as text or read, has a property for each, any text
 * that is not a JSON object or array is the value of `message`; an empty object sets nothing. Throws usage.invalid for an array, for an object
 * that parseJson refuses, for a property that is not a parameter, if a placeholder gets no value, and if a value is
 * outside its schema (a list would become a link to a node).
 */
export function fillsOf(
  message: string | Record<string, unknown>,
  parameters: readonly Parameter[],
): Record<string, unknown> {
  const isText = typeof message === "string";
  const object = isText ? readObject(message) : message;
  const values: Record<string, unknown> = object ?? { message };
  const fills: Record<string, unknown> = {};
  for (const parameter of parameters) {
    const { key, isRequired } = parameter;
    if (Object.hasOwn(values, key)) fills[key] = checkValue(parameter, values[key], isText ? "Message, property " : "");
    else if (isRequired) throw missing(key, object, parameters);
  }
  const unknown = Object.keys(values).find((key) => !Object.hasOwn(fills, key));
  if (unknown !== undefined) throw unfit(object && unknown, parameters);
  return fills;
}

/** Returns a warning about events before a JSON object, which has no place for them; undefined if there are none. */
export function unusedEvents(message: string): string | undefined {
  const lines = EVENT_LINES.exec(message)?.[0];
  if (lines === undefined || readObject(message) === undefined) return undefined;
  const count = lines.split("\n").length - 1;
  return `${count === 1 ? "1 pending event" : `${count} pending events`} before the message ${count === 1 ? "was" : "were"} dropped: a JSON message only sets values.`;
}

/** Reads a JSON object, after the lines of pending events; undefined for a plain text. */
function readObject(message: string): Record<string, unknown> | undefined {
  const text = message.replace(EVENT_LINES, "").trim();
  if (!text.startsWith("{") && !text.startsWith("[")) return undefined;
  const line = message.slice(0, message.trimEnd().length - text.length).split("\n").length;
  let value: unknown;
  try {
    value = parseJson(text, { what: "Message", line });
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    // a text that only begins like JSON
    if (!isLooseJson(text)) return undefined;
    throw new LatentkitError("usage.invalid", error.message, {}, { cause: error });
  }
  if (isPlainObject(value)) return value;
  const expected = "a text or a JSON object";
  const received = "a JSON array";
  throw new LatentkitError("usage.invalid", `Message: expected ${expected}, received ${received}.`, {
    expected,
    received,
  });
}

/** Texts, and the numbers that Python writes besides JSON's; a text without an end goes to the end. */
const TEXT_OR_NON_FINITE = /"(?:[^"\\]|\\.)*(?:"|\\?$)|-?Infinity|NaN/gs;

/** Whether other parsers read a text as JSON: with keys that come twice or are refused, deep nesting, or NaN. */
function isLooseJson(text: string): boolean {
  try {
    JSON.parse(text.replace(TEXT_OR_NON_FINITE, (part) => (part.startsWith('"') ? part : "0")));
    return true;
  } catch {
    return false;
  }
}

function checkValue({ key, property, renamed, isSeed }: Parameter, value: unknown, what: string): unknown {
  const mismatch = renamed?.has(value) ? undefined : mismatchOf(property, value, isSeed);
  if (mismatch === undefined) return value;
  const { expected, suggestion } = mismatch;
  const received = describe(value);
  const message = `${what}${describe(key)}: expected ${expected}, received ${received}.${hintOf(suggestion)}`;
  throw new LatentkitError("usage.invalid", message, { input: key, expected, received, suggestion });
}

function missing(
  key: string,
  object: Record<string, unknown> | undefined,
  parameters: readonly Parameter[],
): LatentkitError {
  const keys = Object.keys(object ?? {});
  const { suggestion, hint } = suggest(key, keys.slice(0, MOST_COMPARED), (near) => `"${key}" by "${near}"`);
  const received =
    object === undefined ? "plain text" : `a JSON object with ${keys.length === 0 ? "no keys" : listKeys(keys, 5)}`;
  const others = parameters.length > 1 ? `; it takes ${keysOf(parameters)}` : "";
  const message = `Message: the graph needs a value for {{${key}}}, received ${received}${others}.${hint}`;
  return new LatentkitError("usage.invalid", message, { input: key, received, suggestion });
}

/** A message that the graph has no use for: one of its keys, or its text if `key` is absent. */
function unfit(key: string | undefined, parameters: readonly Parameter[]): LatentkitError {
  if (parameters.length === 0) {
    return new LatentkitError("usage.invalid", 'Message: the graph takes no message; send "{}" to render it as it is.');
  }
  const taken = keysOf(parameters);
  if (key === undefined) {
    const message = `Message: the graph has no {{message}} for a plain text; it takes a JSON object with ${taken}.`;
    return new LatentkitError("usage.invalid", message, { input: "message", received: "plain text" });
  }
  const { suggestion, hint } = suggest(
    key,
    parameters.slice(0, MOST_COMPARED).map((parameter) => parameter.key),
    (near) => describe(near),
  );
  const message = `Message: the graph has no key ${describe(key)}; it takes ${taken}.${hint}`;
  return new LatentkitError("usage.invalid", message, { input: key, expected: taken, suggestion });
}

/** Most keys that a suggestion is looked for among: a message may have 20,000. */
const MOST_COMPARED = 1000;

const keysOf = (parameters: readonly Parameter[]) =>
  listKeys(
    parameters.map(({ key }) => key),
    20,
  );

function listKeys(keys: readonly string[], most: number): string {
  const first = keys.slice(0, most).map((key) => describe(key));
  return `${first.join(", ")}${keys.length > most ? " and more" : ""}`;
}

/**
 * Returns a graph that came with its request with values put in, each under its key in `set`. Throws as `parseGraph` does,
 * and usage.invalid for a value outside the graph's schema and for a key that is not one of its parameters.
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
  const fills = fillsOf(values, parameters);
  return fillGraph(graph.prompt, fills, (type) => findDefinition(graph, type, registry));
}
