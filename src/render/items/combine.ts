import { LatentkitError } from "../../base/errors.js";
import type { Axis } from "./axis.js";
import { type BatchItem, type ItemValues, itemError } from "./item.js";
import type { ItemFile } from "./open.js";

export interface Combination {
  readonly items: AsyncIterable<BatchItem>;
  /** Number of items, where it is known before they are read. */
  readonly total?: number;
  /** Keys that every item sets, where they are known before the items are read. */
  readonly keys?: readonly string[];
}

/** Items that are read one after the other. */
export type ItemReader = Pick<ItemFile, "keys" | "next" | "close">;

/** Number of combinations of the axes' values, as far as a number can tell. */
export const combinations = (axes: readonly Axis[]): number =>
  Number(axes.reduce((product, { count }) => product * count, 1n));

/** The axes with their first value alone. */
export const firstValues = (axes: readonly Axis[]): Axis[] =>
  axes.map((axis) => {
    const [first] = axis.values();
    return { ...axis, count: 1n, values: () => [first], samples: () => [first] };
  });

/**
 * Every item with every combination of the axes' values: items outermost, then the axes in order, the last one
 * innermost. One item without values where there is no file. At most `limit` items. `onItem` is called with each item
 * of the file. Fails with usage.invalid for a key that two of them set; an item of a file whose own key an axis sets
 * has a fault.
 */
export function combine(
  file: ItemReader | undefined,
  axes: readonly Axis[],
  limit?: number,
  onItem?: (item: BatchItem) => void,
): Combination {
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
  const hasKeys = file === undefined || file.keys.length > 0;
  const keys = hasKeys ? [...(file?.keys ?? []), ...axes.flatMap((axis) => axis.keys)] : undefined;
  return { items: combined(file, axes, limit, onItem), total: totalOf(file, axes, limit), keys };
}

function totalOf(file: ItemReader | undefined, axes: readonly Axis[], limit: number | undefined): number | undefined {
  if (file !== undefined) return undefined;
  const all = combinations(axes);
  const total = Math.min(all, limit ?? all);
  return Number.isSafeInteger(total) ? total : undefined;
}

async function* combined(
  file: ItemReader | undefined,
  axes: readonly Axis[],
  limit = Number.POSITIVE_INFINITY,
  onItem?: (item: BatchItem) => void,
): AsyncGenerator<BatchItem, void, undefined> {
  let left = limit;
  try {
    let item = file === undefined ? { values: {} } : await file.next();
    while (item !== undefined) {
      onItem?.(item);
      const fault = item.fault ?? clash(item, axes);
      // a faulty item counts as often as a good one, so that the others keep their numbers when it is corrected
      for (const values of grid(axes, 0, item.values)) {
        yield { ...item, values, ...(fault !== undefined && { fault }) };
        // the next item is not even read
        if (--left === 0) return;
      }
      item = await file?.next();
    }
  } finally {
    await file?.close();
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
