import { describe, LatentkitError } from "../../base/errors.js";
import { isPlainObject } from "../../io/json/lossless.js";
import { refuseLoss } from "../json-loss.js";
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

/** Copies an item's values: a getter is called once. */
function readValues(item: unknown, name: string): ItemValues {
  if (typeof item !== "object" || item === null || Array.isArray(item) || item instanceof Map) {
    throw new LatentkitError("items.invalid", `${name}: expected an object of values, received ${describe(item)}.`);
  }
  const values: Record<string, unknown> = {};
  for (const key of Object.keys(item)) {
    const value = readValue(item as Record<string, unknown>, key, name);
    refuseLoss(name, key, value, "items.invalid", { digits: true });
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
