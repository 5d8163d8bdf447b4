import { describe } from "../../base/errors.js";
import { asciiDigits } from "../../io/ascii-digits.js";
import { NumberLiteral } from "../../io/json/lossless.js";
import type { InputSpec } from "../../nodes/inputs.js";

/** A number with an exponent, with the marks that spreadsheets set between digits. */
const WITH_EXPONENT = /^[+-]?[0-9][0-9.,'’\s]*e[+-]?[0-9]+$/i;
const WITH_FRACTION = /^[+-]?[0-9]+\.[0-9]*$/;
/** Longer texts are no numbers. */
const MAX_CHARACTERS = 400;

/** Whether an input takes whole numbers beyond 2^53, of which a float has not all digits: a seed. */
export const takesSeeds = ({ type, options: { max } }: Pick<InputSpec, "type" | "options">): boolean =>
  type === "INT" && max !== undefined && max > Number.MAX_SAFE_INTEGER;

/**
 * Why a value is no seed, as a clause: a program has written it as a float, so that it may lack digits. Undefined for any
 * other value.
 */
export function lackOfDigits(value: unknown): string | undefined {
  const why = shorteningOf(value);
  return why && `expected a seed with all its digits, received ${describe(value)}: ${why}`;
}

function shorteningOf(value: unknown): string | undefined {
  // whole numbers that JSON writes with all their digits are bigints there
  if (typeof value === "number")
    return isExact(value) || !Number.isInteger(value) ? undefined : "a float beyond 2^53 does not have them";
  const text = value instanceof NumberLiteral ? value.text : typeof value === "string" ? value.trim() : "";
  const digits = text.length <= MAX_CHARACTERS ? asciiDigits(text) : "";
  if (WITH_EXPONENT.test(digits)) return "a number with an exponent does not have them";
  if (WITH_FRACTION.test(digits) && !isExact(Number(digits))) return "a float beyond 2^53 does not have them";
  return undefined;
}

const isExact = (number: number): boolean => Math.abs(number) <= Number.MAX_SAFE_INTEGER;
