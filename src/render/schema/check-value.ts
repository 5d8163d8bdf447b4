import { describe, suggest } from "../../base/errors.js";
import { asciiDigits } from "../../io/ascii-digits.js";
import { NumberLiteral } from "../../io/json/lossless.js";
import { lackOfDigits } from "../fill/seed-digits.js";
import type { Exact, Limits } from "./property.js";

/** Lists of choices beyond this length are counted, not listed. */
const LISTED_CHOICES = 20;
/** Longer texts are no numbers. */
const MAX_DIGITS = 400;

const WHOLE = /^[+-]?\d+$/;
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** Reason why a value is not one that a property takes. */
export interface Mismatch {
  readonly expected: string;
  readonly suggestion?: string;
}

/**
 * Compares a value with the limits of a property, as `set` reads it: a text of digits is a number where one is expected,
 * and a number is a text. A seed needs all its digits. Undefined where it fits.
 */
export function mismatchOf(limits: Limits<Exact>, value: unknown, isSeed = false): Mismatch | undefined {
  const isScalar = value instanceof NumberLiteral || ["string", "number", "bigint", "boolean"].includes(typeof value);
  if (!isScalar) return { expected: expectedOf(limits) };
  if (isSeed && lackOfDigits(value) !== undefined) return { expected: expectedSeed(limits) };
  if (limits.enum !== undefined) return choiceMismatch(limits, value);
  if (limits.type === "boolean") {
    const isRight = typeof value === "boolean" || value === "true" || value === "false";
    return isRight ? undefined : { expected: expectedOf(limits) };
  }
  if (limits.type !== "integer" && limits.type !== "number") return undefined;
  const number = readNumber(value);
  return number !== undefined && isInside(limits, number) ? undefined : { expected: expectedOf(limits) };
}

function choiceMismatch(limits: Limits<Exact>, value: unknown): Mismatch | undefined {
  const choices = limits.enum!;
  const number = typeof value === "string" ? undefined : Number(value);
  if (choices.some((choice) => choice === value || (typeof choice !== "string" && Number(choice) === number))) return;
  const texts = choices.filter((choice) => typeof choice === "string");
  return { expected: expectedOf(limits), suggestion: suggest(value, texts).suggestion };
}

/** Whole numbers with every digit. */
function readNumber(value: unknown): Exact | undefined {
  if (typeof value === "bigint") return value;
  const text = typeof value === "string" ? asciiDigits(value.trim()) : value instanceof NumberLiteral ? value.text : "";
  const number =
    typeof value === "number" ? value : text.length <= MAX_DIGITS && DECIMAL.test(text) ? Number(text) : NaN;
  if (text.length <= MAX_DIGITS && WHOLE.test(text)) return BigInt(text.replace("+", ""));
  return Number.isFinite(number) ? number : undefined;
}

function isInside({ type, minimum, maximum, multipleOf }: Limits<Exact>, number: Exact): boolean {
  if (minimum !== undefined && number < minimum) return false;
  if (maximum !== undefined && number > maximum) return false;
  if (type === "integer" && typeof number === "number" && !Number.isInteger(number)) return false;
  return multipleOf === undefined || BigInt(number) % BigInt(multipleOf) === 0n;
}

/** Values that fit, in words: "a whole number from 8 to 512, a multiple of 8". */
function expectedOf({ type, enum: choices, minimum, maximum, multipleOf }: Limits<Exact>): string {
  if (choices !== undefined) return expectedChoice(choices);
  if (type === "boolean") return "true or false";
  if (type !== "integer" && type !== "number") return "a text, number or boolean";
  const from = minimum === undefined ? "" : maximum === undefined ? ` of at least ${minimum}` : ` from ${minimum}`;
  const to = maximum === undefined ? "" : minimum === undefined ? ` of at most ${maximum}` : ` to ${maximum}`;
  const step = multipleOf === undefined ? "" : `, a multiple of ${multipleOf}`;
  return `a ${type === "integer" ? "whole " : ""}number${from}${to}${step}`;
}

const expectedSeed = (limits: Limits<Exact>): string =>
  `${limits.type === "integer" ? expectedOf(limits) : "a seed"} with all its digits`;

function expectedChoice(choices: readonly unknown[]): string {
  if (choices.length === 0) return "one of the choices (there is nothing to choose from)";
  if (choices.length > LISTED_CHOICES) return `one of ${choices.length} choices`;
  const names = choices.map((choice) => describe(choice));
  return names.length === 1 ? names[0]! : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
