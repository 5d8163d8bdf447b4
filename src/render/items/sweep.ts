import { describe, LatentkitError } from "../../base/errors.js";
import { NumberLiteral, parseJson } from "../../io/json/lossless.js";
import { lackOfDigits } from "../fill/seed-digits.js";
import { type Axis, rangeEnds, rangeLength, rangeValues } from "./axis.js";
import { type GraphKeys, requireKey, takesSeed } from "./graph-keys.js";

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
