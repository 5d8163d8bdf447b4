import { describe, LatentkitError } from "../../errors.js";
import { isPlainObject, MAX_DEPTH, mayLackDigits, NumberLiteral } from "../../io/json-lossless.js";
import type { BatchItem, ItemValues } from "./item.js";

/** Items of a program as a batch takes them: one that is no object of plain values has a fault, the rest goes on. */
export async function* programItems(
  items: Iterable<object> | AsyncIterable<object>,
): AsyncGenerator<BatchItem, void, undefined> {
  let index = 0;
  for await (const item of items) {
    const name = `Item ${index++}`;
    try {
      yield { values: readValues(item, name) };
    } catch (error) {
      // what a consumer throws into this generator is not the item's
      if (!(error instanceof LatentkitError)) throw error;
      yield { values: {}, fault: error };
    }
  }
}

/** Keys that some of the items have; undefined where they cannot be known before the items are read. */
export function keysOf(items: Iterable<object> | AsyncIterable<object>): string[] | undefined {
  if (!Array.isArray(items)) return undefined;
  const keys = new Set<string>();
  for (const item of items as unknown[]) {
    // what is no object of values fails when it is read
    if (isPlainObject(item)) for (const key of Object.keys(item)) keys.add(key);
    else if (typeof item === "object" && item !== null) return undefined;
  }
  return [...keys];
}

/** `set` and `extraPnginfo` reach a rendering thread as JSON. Fails with usage.invalid for what would be lost there. */
export function refuseUnsendable(options: { readonly set?: object; readonly extraPnginfo?: object }): void {
  for (const option of ["set", "extraPnginfo"] as const) {
    for (const [key, value] of Object.entries(options[option] ?? {})) {
      // an editor's data in extraPnginfo is printed, not computed with
      const wrong = lostIn(value, 0, option === "set");
      if (wrong !== undefined) throw refused(option, key, wrong.value, "usage.invalid");
    }
  }
}

/** Copies an item's values: a getter is called once. */
function readValues(item: unknown, name: string): ItemValues {
  if (typeof item !== "object" || item === null || Array.isArray(item) || item instanceof Map) {
    throw new LatentkitError("items.invalid", `${name}: expected an object of values, received ${describe(item)}.`);
  }
  const values: Record<string, unknown> = {};
  for (const key of Object.keys(item)) {
    const value = readValue(item as Record<string, unknown>, key, name);
    const wrong = lostIn(value, 0, true);
    if (wrong !== undefined) throw refused(name, key, wrong.value, "items.invalid");
    values[key] = value;
  }
  return values;
}

function readValue(item: Record<string, unknown>, key: string, name: string): unknown {
  try {
    return item[key];
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new LatentkitError("items.invalid", `${name}, ${key}: reading the value failed: ${why}`, {}, { cause });
  }
}

function refused(name: string, key: string, value: unknown, code: "usage.invalid" | "items.invalid"): LatentkitError {
  const expected =
    typeof value === "number" && mayLackDigits(value)
      ? "a whole number beyond 2^53 as a bigint or text, with all its digits"
      : "a text, a number, true, false, null, or a list or plain object of these";
  const received = typeof value === "symbol" ? "a symbol" : describe(value);
  return new LatentkitError(code, `${name}, ${key}: expected ${expected}, received ${received}.`);
}

/** The first value inside that JSON would lose, or with `digits` one that JavaScript may have rounded; undefined where there is none. */
function lostIn(value: unknown, depth: number, digits: boolean): { readonly value: unknown } | undefined {
  if (typeof value === "number") {
    return Number.isFinite(value) && !(digits && mayLackDigits(value)) ? undefined : { value };
  }
  if (value === null || ["string", "bigint", "boolean"].includes(typeof value)) return undefined;
  if (value instanceof NumberLiteral) return undefined;
  if (depth >= MAX_DEPTH || !(Array.isArray(value) || isPlainObject(value))) return { value };
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    const lost = lostIn(inner, depth + 1, digits);
    if (lost !== undefined) return lost;
  }
  return undefined;
}
