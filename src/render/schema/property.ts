import type { Choice, ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import { choicesOf, plain, tryConvert } from "../../nodes/values.js";

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
 * Limits of an input by its declaration; any text, number or boolean where there is none. Choices that depend on a
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

/** A step counts from the minimum in the editor: multiples only where the minimum is one. */
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

/** Value of an input as its schema shows it; undefined for one that is no text, number or boolean, or that does not fit. */
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
