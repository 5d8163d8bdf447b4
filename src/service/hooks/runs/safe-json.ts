import { messageOf as fullMessageOf } from "../../../base/errors.js";

/**
 * Writes any value as one line of JSON; never throws. A BigInt becomes its digits as text, a cycle "[Circular]", and a
 * value that cannot be written at all (a throwing getter, endless depth) { unserializable: reason }.
 */
export function toJsonLine(value: unknown): string {
  for (const replacer of [digits, breakCycles()]) {
    const line = tryStringify(value, replacer);
    if (typeof line === "string") return line;
  }
  return JSON.stringify({ unserializable: String(tryStringify(value, digits)) });
}

type Replacer = (this: unknown, key: string, value: unknown) => unknown;

/** Returns the line, or the reason why there is none. undefined and functions alone have no JSON: they become null. */
function tryStringify(value: unknown, replacer: Replacer): string | Error {
  try {
    return JSON.stringify(value, replacer) ?? "null";
  } catch (error) {
    // the thrown value may be hostile itself
    return new Error(messageOf(error));
  }
}

const digits: Replacer = (_key, value) => (typeof value === "bigint" ? value.toString() : value);

function breakCycles(): Replacer {
  const ancestors: unknown[] = [];
  return function (_key, value) {
    if (typeof value !== "object" || value === null) return digits.call(this, _key, value);
    // `this` holds the value: everything above it on the stack is finished
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop();
    if (ancestors.includes(value)) return "[Circular]";
    ancestors.push(value);
    return value;
  };
}

const LONGEST_MESSAGE = 2000;

/** The message of a thrown value, in at most 2,000 characters; never throws. */
export function messageOf(thrown: unknown): string {
  const text = fullMessageOf(thrown);
  return text.length > LONGEST_MESSAGE ? `${text.slice(0, LONGEST_MESSAGE)}…` : text;
}

/** The stack of a thrown error in at most 2,000 characters, undefined where it has none; never throws. */
export function stackOf(thrown: unknown): string | undefined {
  try {
    const stack = thrown instanceof Error ? thrown.stack : undefined;
    return typeof stack === "string" ? stack.slice(0, LONGEST_MESSAGE) : undefined;
  } catch {
    return undefined;
  }
}
