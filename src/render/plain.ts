import { describe, LatentkitError } from "../base/errors.js";
import type { RunEvent } from "../graph/events.js";
import { keysInOrder, NumberLiteral } from "../io/json/lossless.js";
import type { RunOutcome } from "./result.js";

const MAX_DEPTH = 32;

// decision 17
/** An event as plain data: tensors and objects of the program are named, not carried. */
export function plainEvent(event: RunEvent, literal: (literal: NumberLiteral) => unknown = (same) => same): unknown {
  return plain(brief(event), literal);
}

function brief(event: RunEvent): object {
  if (event.type === "node-done") return { ...event, outputs: event.outputs.map(inWords) };
  if (event.type !== "run-done") return event;
  return { ...event, outputs: outputsInWords(event.outputs) };
}

/** A result as plain data. */
export function plainResult(
  result: Omit<RunOutcome, "error">,
  literal: (literal: NumberLiteral) => unknown = (same) => same,
): unknown {
  return plain({ ...result, outputs: outputsInWords(result.outputs) }, literal);
}

const outputsInWords = (outputs: RunOutcome["outputs"]) =>
  Object.fromEntries(Object.entries(outputs).map(([id, values]) => [id, values.map(inWords)]));

const inWords = (value: unknown): unknown => (value !== null && typeof value === "object" ? describe(value) : value);

/** Lists, plain objects and scalars as they are, errors as their facts, anything else in words. */
export function plain(
  value: unknown,
  literal: (literal: NumberLiteral) => unknown = (same) => same,
  depth = 0,
): unknown {
  if (value instanceof LatentkitError) {
    return plain({ code: value.code, message: value.message, ...value.details }, literal, depth);
  }
  if (value instanceof NumberLiteral) return literal(value);
  if (typeof value === "function" || typeof value === "symbol") return describe(value);
  if (value === null || typeof value !== "object") return value;
  if (depth > MAX_DEPTH) return describe(value);
  if (Array.isArray(value)) return value.map((item) => plain(item, literal, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return describe(value);
  const keys = keysInOrder(value).filter((key) => (value as Record<string, unknown>)[key] !== undefined);
  return Object.fromEntries(
    keys.map((key) => [key, plain((value as Record<string, unknown>)[key], literal, depth + 1)]),
  );
}
