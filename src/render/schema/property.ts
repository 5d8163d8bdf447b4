import { describe } from "../../base/errors.js";
import { suggest } from "../../base/suggest.js";
import { NumberLiteral } from "../../io/json/lossless.js";
import { asciiDigits } from "../../io/python-text.js";
import type { Choice, ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import { choicesOf, plain, tryConvert } from "../../nodes/values.js";
import { lackOfDigits } from "../fill/seed-digits.js";

export type PropertyType = "integer" | "number" | "string" | "boolean";

/** Values that a property takes. */
export interface Limits<Bound = number> {
  /** A list where any of these will do. */
  readonly type?: PropertyType | readonly PropertyType[];
  readonly enum?: readonly Choice[];
  readonly minimum?: Bound;
  readonly maximum?: Bound;
  readonly multipleOf?: number;
}

/** One parameter of a graph, as JSON Schema describes a property. */
export interface PropertySchema<Bound = number> extends Limits<Bound> {
  readonly title: string;
  readonly description?: string;
  /** Value in the graph; a placeholder has none. */
  readonly default?: string | Bound | boolean;
}

/** Bounds with every digit: those of seeds are bigints. */
export type Exact = number | bigint;

const SCALARS: readonly PropertyType[] = ["string", "number", "boolean"];
const ANY: Limits<Exact> = { type: SCALARS };
const TEXT: Limits<Exact> = { type: "string" };

/** Limits of a text that holds a placeholder among other words. */
export const IN_TEXT = TEXT;

/**
 * Limits of an input by its declaration; any text, number or boolean if there is none. Choices that depend on a
 * context are any text without one.
 */
export function limitsOf(spec: InputSpec | undefined, context: ChoiceContext | undefined): Limits<Exact> {
  if (spec === undefined) return ANY;
  const { min, max, step } = spec.options;
  const bounds = { ...(min !== undefined && { minimum: min }), ...(max !== undefined && { maximum: max }) };
  switch (spec.type) {
    case "INT":
      return { type: "integer", ...bounds, ...multipleOf(step, min) };
    case "FLOAT":
      return { type: "number", ...bounds };
    case "STRING":
      return TEXT;
    case "BOOLEAN":
      return { type: "boolean" };
    case "COMBO":
      return choiceLimits(
        typeof spec.choices === "function" && context === undefined ? undefined : choicesOf(spec, context),
      );
    default:
      return ANY;
  }
}

/** A step counts from the minimum in the editor: multiples only if the minimum is one. */
function multipleOf(step: number | undefined, min: Exact = 0): { multipleOf?: number } {
  if (step === undefined || !Number.isSafeInteger(step) || step < 2) return {};
  return BigInt(min) % BigInt(step) === 0n ? { multipleOf: step } : {};
}

function choiceLimits(choices: readonly Choice[] | undefined): Limits<Exact> {
  if (choices === undefined) return TEXT;
  const types = [...new Set(choices.map((choice) => typeof choice as PropertyType))];
  return { ...(types.length > 0 && { type: types.length === 1 ? types[0]! : types }), enum: choices };
}

/** Limits of a value that several inputs get. */
export function bothLimits(a: Limits<Exact>, b: Limits<Exact>): Limits<Exact> {
  if (isLoose(a)) return b;
  if (isLoose(b)) return a;
  if (a.enum !== undefined || b.enum !== undefined) {
    const [listed, other] = a.enum === undefined ? [b, a] : [a, b];
    const { enum: choices } = other;
    return choices === undefined
      ? listed
      : { ...listed, enum: listed.enum!.filter((value) => choices.includes(value)) };
  }
  if (!isNumeric(a) || !isNumeric(b)) return isNumeric(a) ? b : a;
  const minimum = pick(a.minimum, b.minimum, (x, y) => (x > y ? x : y));
  const maximum = pick(a.maximum, b.maximum, (x, y) => (x < y ? x : y));
  const step = pick(a.multipleOf, b.multipleOf, (x, y) => Number(commonMultiple(BigInt(x), BigInt(y))));
  return {
    type: a.type === "integer" || b.type === "integer" ? "integer" : "number",
    ...(minimum !== undefined && { minimum }),
    ...(maximum !== undefined && { maximum }),
    ...(step !== undefined && { multipleOf: step }),
  };
}

/** Takes every text, number and boolean: a STRING is one too, for what it gets becomes text. */
const isLoose = ({ type, enum: choices }: Limits<Exact>): boolean =>
  choices === undefined && (type === "string" || type === SCALARS);

const isNumeric = ({ type }: Limits<Exact>): boolean => type === "integer" || type === "number";

const pick = <T>(a: T | undefined, b: T | undefined, choose: (a: T, b: T) => T): T | undefined =>
  a === undefined ? b : b === undefined ? a : choose(a, b);

function commonMultiple(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return (a / x) * b;
}

/** Value of an input as its schema shows it; undefined if it is not a text, number or boolean, or does not fit. */
export function defaultOf(spec: InputSpec | undefined, value: unknown): string | Exact | boolean | undefined {
  const conversion = spec === undefined ? undefined : tryConvert(spec, value, { skipRange: true });
  if (conversion?.ok === false) return undefined;
  const known = plain(conversion === undefined ? value : conversion.value);
  if (typeof known === "bigint") return isSafe(known) ? Number(known) : known;
  if (typeof known === "number") return Number.isFinite(known) ? known : undefined;
  return typeof known === "string" || typeof known === "boolean" ? known : undefined;
}

export const isSafe = (value: bigint): boolean =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER);

/** Lists of choices beyond this length are counted, not listed. */
const LISTED_CHOICES = 20;
/** Longer texts are not numbers. */
const MAX_DIGITS = 400;

const WHOLE = /^[+-]?\d+$/;
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** Reason why a value is not one that a property takes. */
export interface Mismatch {
  readonly expected: string;
  readonly suggestion?: string;
}

/**
 * Compares a value with the limits of a property, as `set` reads it: a text of digits is a number if one is expected,
 * and a number is a text. A seed needs all its digits. Undefined if it fits.
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
