import { closest, describe, LatentkitError } from "../errors.js";
import { isPlainObject, NumberLiteral, parseJson } from "../io/json-lossless.js";

/** What a session's pending events look like in front of a message. */
const EVENT_LINES = /^(?:System event: [^\n]*\n)+/;

/**
 * Values of a graph's placeholders: a message that is a JSON object fills `{{key}}`, any other fills `{{message}}`.
 * Keys without a placeholder are left out: a message sets nothing else in the graph. Fails with usage.invalid where a
 * placeholder gets no value, or one that is no text, number or boolean (a list could pose as a link to a node).
 */
export function fillsOf(message: string, placeholders: ReadonlySet<string>): Record<string, unknown> {
  const object = readObject(message);
  const given: Record<string, unknown> = object ?? { message };
  const fills: Record<string, unknown> = {};
  for (const key of placeholders) {
    if (!Object.hasOwn(given, key)) throw missing(key, object);
    fills[key] = checkScalar(key, given[key]);
  }
  return fills;
}

/** Events that came with a JSON message stand before it. */
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
  const suggestion = closest(key, keys);
  const received =
    object === undefined ? "plain text" : `a JSON object with ${keys.length === 0 ? "no keys" : someOf(keys)}`;
  const hint = suggestion === undefined ? "" : ` Did you mean "${key}" by "${suggestion}"?`;
  return new LatentkitError(
    "usage.invalid",
    `Message: the graph needs a value for {{${key}}}, received ${received}.${hint}`,
    { input: key, received, suggestion },
  );
}

const MOST_SHOWN = 5;

function someOf(keys: readonly string[]): string {
  const shown = keys.slice(0, MOST_SHOWN).map((key) => describe(key));
  return `${shown.join(", ")}${keys.length > MOST_SHOWN ? " and more" : ""}`;
}
