import { describe, LatentkitError } from "../../base/errors.js";
import { isPlainObject } from "../../io/json/lossless.js";
import { refuseLoss } from "../json-loss.js";
import type { BatchItem, ItemValues } from "./item.js";
import { type ItemKeys, withFields } from "./item-keys.js";

/** Items of a program as a batch takes them: one that is no object of plain values has a fault, the rest goes on. */
export async function* programItems(
  items: Iterable<object> | AsyncIterable<object>,
  keys: ItemKeys,
): AsyncGenerator<BatchItem, void, undefined> {
  let index = 0;
  for await (const item of items) {
    const name = `Item ${index++}`;
    try {
      yield sorted(readValues(item, name), keys, name);
    } catch (error) {
      // what a consumer throws into this generator is not the item's
      if (!(error instanceof LatentkitError)) throw error;
      yield { values: {}, fault: error };
    }
  }
}

/**
 * Keys that some of the items have, those of values and of fields; undefined where they cannot be known before the items
 * are read.
 */
export function keysOf(
  items: Iterable<object> | AsyncIterable<object>,
  itemKeys: ItemKeys,
): { readonly values: string[]; readonly fields: string[] } | undefined {
  if (!Array.isArray(items)) return undefined;
  const names = new Set<string>();
  for (const item of items as unknown[]) {
    // what is no object of values fails when it is read
    if (isPlainObject(item)) for (const key of Object.keys(item)) names.add(key);
    else if (typeof item === "object" && item !== null) return undefined;
  }
  const keys = { values: [] as string[], fields: [] as string[] };
  for (const name of names) {
    const role = itemKeys.roleOf(name);
    if ("reason" in role) keys.values.push(name);
    else if (role.role === "value") keys.values.push(role.key);
    else if (role.role === "field") keys.fields.push(name);
  }
  return keys;
}

/** Values and fields of an item. A key that is for nothing stays, and fails the item where the graph is filled. */
function sorted(given: ItemValues, keys: ItemKeys, name: string): BatchItem {
  const values: Record<string, unknown> = {};
  const fields: Record<string, unknown> = {};
  for (const key of Object.keys(given)) {
    const role = keys.roleOf(key);
    if ("role" in role && role.role !== "value") {
      if (role.role === "field") fields[key] = given[key];
      continue;
    }
    const own = "role" in role ? role.key : key;
    if (Object.hasOwn(values, own)) {
      throw new LatentkitError("items.invalid", `${name}, ${key}: another key of the item sets ${own} as well.`);
    }
    values[own] = given[key];
  }
  return { values, ...withFields(fields) };
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
