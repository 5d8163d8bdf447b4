import { describe, hintOf, LatentkitError, suggest } from "../base/errors.js";
import { isPlainObject, parseJson } from "../io/json/lossless.js";
import { mismatchOf } from "../render/schema/check-value.js";
import type { Parameter } from "../render/schema/parameters.js";

/** Lines of a session's pending events in front of a message. */
const EVENT_LINES = /^(?:System event: [^\n]*\n)+/;

// decisions 179, 180
/**
 * Values for a graph's named parameters: a message that is a JSON object has a property for each, any other is the value
 * of `message`. Properties that name no parameter are left out: a message sets nothing else in the graph. Throws
 * usage.invalid where a placeholder gets no value, or one is outside its schema (a list would become a link to a node).
 */
export function fillsOf(message: string, parameters: readonly Parameter[]): Record<string, unknown> {
  const object = readObject(message);
  const values: Record<string, unknown> = object ?? { message };
  const fills: Record<string, unknown> = {};
  for (const parameter of parameters) {
    const { key, isRequired } = parameter;
    if (Object.hasOwn(values, key)) fills[key] = checkValue(parameter, values[key]);
    else if (isRequired) throw missing(key, object);
  }
  return fills;
}

/** Reads a JSON object, after the lines of pending events. */
function readObject(message: string): Record<string, unknown> | undefined {
  const text = message.replace(EVENT_LINES, "").trim();
  if (!text.startsWith("{")) return undefined;
  try {
    const value = parseJson(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    // a text that only begins like JSON
    return undefined;
  }
}

function checkValue({ key, property, renamed }: Parameter, value: unknown): unknown {
  const mismatch = renamed?.has(value) ? undefined : mismatchOf(property, value);
  if (mismatch === undefined) return value;
  const { expected, suggestion } = mismatch;
  const received = describe(value);
  const message = `Message, property ${describe(key)}: expected ${expected}, received ${received}.${hintOf(suggestion)}`;
  throw new LatentkitError("usage.invalid", message, { input: key, expected, received, suggestion });
}

function missing(key: string, object: Record<string, unknown> | undefined): LatentkitError {
  const keys = Object.keys(object ?? {});
  const { suggestion, hint } = suggest(key, keys, (near) => `"${key}" by "${near}"`);
  const received =
    object === undefined ? "plain text" : `a JSON object with ${keys.length === 0 ? "no keys" : listKeys(keys)}`;
  const message = `Message: the graph needs a value for {{${key}}}, received ${received}.${hint}`;
  return new LatentkitError("usage.invalid", message, { input: key, received, suggestion });
}

const MOST_LISTED = 5;

function listKeys(keys: readonly string[]): string {
  const first = keys.slice(0, MOST_LISTED).map((key) => describe(key));
  return `${first.join(", ")}${keys.length > MOST_LISTED ? " and more" : ""}`;
}
