import { describe, LatentkitError, suggest } from "../base/errors.js";
import { isPlainObject, NumberLiteral, parseJson } from "../io/json/lossless.js";

/** Lines of a session's pending events in front of a message. */
const EVENT_LINES = /^(?:System event: [^\n]*\n)+/;

// decisions 179, 180
/**
 * Values for a graph's placeholders: a message that is a JSON object fills `{{key}}`, any other fills `{{message}}`.
 * Keys without a placeholder are left out: a message sets nothing else in the graph. Throws usage.invalid where a
 * placeholder gets no value, or one that is no text, number or boolean (a list would become a link to a node).
 */
export function fillsOf(message: string, placeholders: ReadonlySet<string>): Record<string, unknown> {
  const object = readObject(message);
  const values: Record<string, unknown> = object ?? { message };
  const fills: Record<string, unknown> = {};
  for (const key of placeholders) {
    if (!Object.hasOwn(values, key)) throw missing(key, object);
    fills[key] = checkScalar(key, values[key]);
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

function checkScalar(key: string, value: unknown): unknown {
  if (value instanceof NumberLiteral || ["string", "number", "bigint", "boolean"].includes(typeof value)) return value;
  const message = `Message: {{${key}}} expected a text, number or boolean, received ${describe(value)}.`;
  throw new LatentkitError("usage.invalid", message, { input: key, received: describe(value) });
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
