import { describe, LatentkitError } from "../../base/errors.js";
import { NumberLiteral, parseJson } from "../../io/json/lossless.js";
import { lackOfDigits } from "../fill/seed-digits.js";
import { type GraphKeys, requireKey, takesSeed } from "./graph-keys.js";
import { type BatchItem, type ItemValues, itemError } from "./item.js";
import type { ItemFile } from "./open.js";

/** One direction of a matrix: the keys that it sets, and the values that it gives all of them, one after the other. */
export interface Axis {
  /** Option as the user wrote it, for messages: "--sweep 3.steps". */
  readonly option: string;
  readonly keys: readonly string[];
  readonly count: bigint;
  values(): Iterable<unknown>;
  /** Values that vouch for all others: if the ends of a range are right, so is the rest. */
  samples(): Iterable<unknown>;
}

/** Whole numbers from one to another, both included. */
export interface Range {
  readonly from: bigint;
  readonly to: bigint;
}

export const rangeLength = ({ from, to }: Range): bigint => to - from + 1n;

/** Numbers of a range as JSON has them: bigints only beyond 2^53. */
export function* rangeValues({ from, to }: Range): Generator<number | bigint, void, undefined> {
  for (let value = from; value <= to; value++) yield jsonNumber(value);
}

/** The first number of a range, and the last one. */
export const rangeEnds = ({ from, to }: Range): (number | bigint)[] =>
  (from === to ? [from] : [from, to]).map(jsonNumber);

function jsonNumber(value: bigint): number | bigint {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}

const RANGE = /^(-?\d{1,20})\s*\.\.\s*(-?\d{1,20})$/;

/**
 * Reads "3.steps=10,20,30", "5.seed=0..3" (whole numbers, both ends included) or a JSON list for values that hold commas,
 * `6.text=["a fox, asleep", "a hare"]`. Values keep every digit. Fails with usage.invalid, for seeds that lack digits too.
 */
export function sweepAxis(text: string, keys: GraphKeys): Axis {
  const equals = text.indexOf("=");
  if (equals < 1) {
    throw new LatentkitError("usage.invalid", `--sweep: expected KEY=VALUES, received ${describe(text)}.`);
  }
  const named = text.slice(0, equals).trim();
  const option = `sweep ${named}`;
  const inputs = requireKey(keys, named, option);
  const key = keys.canonical(named);
  return { option: `--${option}`, keys: [key], ...valuesOf(text.slice(equals + 1).trim(), option, takesSeed(inputs)) };
}

function valuesOf(text: string, option: string, areSeeds: boolean): Pick<Axis, "count" | "values" | "samples"> {
  const refused = (expected: string, received: string, cause?: unknown) =>
    new LatentkitError("usage.invalid", `--${option}: expected ${expected}, received ${received}.`, {}, { cause });
  const [, first, last] = RANGE.exec(text) ?? [];
  if (first !== undefined) {
    const range = { from: BigInt(first), to: BigInt(last!) };
    if (range.from > range.to) throw refused("a range that goes up", describe(text));
    return { count: rangeLength(range), values: () => rangeValues(range), samples: () => rangeEnds(range) };
  }
  const values = text.startsWith("[") ? readList(text, option) : text.split(",").map((value) => value.trim());
  if (values.length === 0) throw refused("at least one value", "none");
  for (const value of values) {
    if (value === "" && !text.startsWith("["))
      throw refused('values with commas between ([""] for an empty text)', describe(text));
    if (!isScalar(value)) throw refused("texts, numbers, true or false", describe(value));
    const lack = areSeeds ? lackOfDigits(value) : undefined;
    if (lack !== undefined) throw new LatentkitError("usage.invalid", `--${option}: ${lack}.`);
  }
  return { count: BigInt(values.length), values: () => values, samples: () => values };
}

function readList(text: string, option: string): unknown[] {
  try {
    return parseJson(text, { what: `--${option}` }) as unknown[];
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new LatentkitError("usage.invalid", error.message, {}, { cause: error });
  }
}

const isScalar = (value: unknown) =>
  value instanceof NumberLiteral || ["string", "number", "bigint", "boolean"].includes(typeof value);

export interface Combination {
  readonly items: AsyncIterable<BatchItem>;
  /** Number of items, if it is known before they are read. */
  readonly total?: number;
  /** Keys that every item sets, if they are known before the items are read. */
  readonly keys?: readonly string[];
}

/** Items that are read one after the other. */
export type ItemReader = Pick<ItemFile, "keys" | "next" | "close">;

/** Number of combinations of the axes' values, as precisely as a number can. */
export const combinations = (axes: readonly Axis[]): number =>
  Number(axes.reduce((product, { count }) => product * count, 1n));

/** The axes with only their first value. */
export const firstValues = (axes: readonly Axis[]): Axis[] =>
  axes.map((axis) => {
    const [first] = axis.values();
    return { ...axis, count: 1n, values: () => [first], samples: () => [first] };
  });

/**
 * Every item with every combination of the axes' values: items outermost, then the axes in order, the last one
 * innermost. One item without values if there is no file. At most `limit` items. Fails with usage.invalid for a key that
 * two of them set; an item of a file whose own key an axis sets has a fault.
 */
export function combine(file: ItemReader | undefined, axes: readonly Axis[], limit?: number): Combination {
  const owners = new Map<string, string>((file?.keys ?? []).map((key) => [key, "--items"]));
  for (const { option, keys } of axes) {
    for (const key of keys) {
      const owner = owners.get(key);
      if (owner !== undefined) {
        throw new LatentkitError("usage.invalid", `${option}: ${key} is already set by ${owner}.`);
      }
      owners.set(key, option);
    }
  }
  const hasKeys = file === undefined || file.keys.length > 0;
  const keys = hasKeys ? [...(file?.keys ?? []), ...axes.flatMap((axis) => axis.keys)] : undefined;
  return { items: combined(file, axes, limit), total: totalOf(file, axes, limit), keys };
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
): AsyncGenerator<BatchItem, void, undefined> {
  let left = limit;
  try {
    let item = file === undefined ? { values: {} } : await file.next();
    while (item !== undefined) {
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
