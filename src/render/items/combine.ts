import { LatentkitError } from "../../errors.js";
import type { BatchItem, ItemValues } from "../batch/types.js";
import type { Axis } from "./axis.js";
import { itemError } from "./item-error.js";
import type { ItemFile } from "./source.js";

export interface Combination {
  readonly items: AsyncIterable<BatchItem>;
  /** Number of items, where it is known before they are read. */
  readonly total?: number;
  /** What every item sets, where that is known before they are read. */
  readonly keys?: readonly string[];
}

/**
 * Every item with every combination of the axes' values: items outermost, then the axes in order, the last one
 * innermost. One item without values where there is no file. At most `limit` items. Fails with usage.invalid for a key
 * that two of them set; an item of a file whose own key an axis sets has a fault.
 */
export function combine(file: ItemFile | undefined, axes: readonly Axis[], limit?: number): Combination {
  const owners = new Map<string, string>((file?.keys ?? []).map((key) => [key, "--items"]));
  for (const { option, keys } of axes) {
    for (const key of keys) {
      const owner = owners.get(key);
      if (owner !== undefined) {
        throw new LatentkitError("usage.invalid", `${option}: ${key} is set by ${owner} already.`);
      }
      owners.set(key, option);
    }
  }
  const items = combined(file?.items ?? [{ values: {} }], axes);
  const isKnown = file === undefined || file.keys.length > 0;
  const keys = isKnown ? [...(file?.keys ?? []), ...axes.flatMap((axis) => axis.keys)] : undefined;
  return { items: limit === undefined ? items : firstOf(items, limit), total: totalOf(file, axes, limit), keys };
}

function totalOf(file: ItemFile | undefined, axes: readonly Axis[], limit: number | undefined): number | undefined {
  if (file !== undefined) return undefined;
  const all = Number(axes.reduce((product, { count }) => product * count, 1n));
  const total = Math.min(all, limit ?? all);
  return Number.isSafeInteger(total) ? total : undefined;
}

async function* combined(
  items: Iterable<BatchItem> | AsyncIterable<BatchItem>,
  axes: readonly Axis[],
): AsyncGenerator<BatchItem, void, undefined> {
  for await (const item of items) {
    const fault = item.fault ?? clash(item, axes);
    // a faulty item counts as often as a good one, so that the others keep their numbers when it is mended
    for (const values of grid(axes, 0, item.values)) {
      yield { values, origin: item.origin, ...(fault !== undefined && { fault }) };
    }
  }
}

function clash({ values, origin }: BatchItem, axes: readonly Axis[]): LatentkitError | undefined {
  for (const { option, keys } of axes) {
    const key = keys.find((key) => Object.hasOwn(values, key));
    if (key !== undefined && origin !== undefined)
      return itemError({ ...origin, column: undefined, key }, `${option} sets this key, too`);
  }
  return undefined;
}

function* grid(axes: readonly Axis[], at: number, values: ItemValues): Generator<ItemValues, void, undefined> {
  const axis = axes[at];
  if (axis === undefined) {
    yield values;
    return;
  }
  for (const value of axis.values()) {
    const added = Object.fromEntries(axis.keys.map((key) => [key, value]));
    yield* grid(axes, at + 1, { ...values, ...added });
  }
}

async function* firstOf(items: AsyncIterable<BatchItem>, limit: number): AsyncGenerator<BatchItem, void, undefined> {
  let left = limit;
  for await (const item of items) {
    yield item;
    // the next item is not even read
    if (--left === 0) return;
  }
}
