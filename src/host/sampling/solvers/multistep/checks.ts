import { describe, LatentkitError } from "../../../../base/errors.js";

/** Fails with value.out-of-range unless an option of a sampler is a whole number of the range. */
export function requireWhole(option: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  const expected = `a whole number from ${min} to ${max}`;
  throw new LatentkitError("value.out-of-range", `${option}: expected ${expected}, received ${describe(value)}.`);
}

/** Fails with value.invalid unless an option of a sampler is one of the names. */
export function requireOneOf(option: string, value: string, names: readonly string[]): void {
  if (names.includes(value)) return;
  throw new LatentkitError(
    "value.invalid",
    `${option}: expected one of ${names.join(", ")}, received ${describe(value)}.`,
  );
}
