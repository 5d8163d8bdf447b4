import { type ErrorCode, inputError, type LatentkitError, valueError } from "../base/errors.js";
import { suggest } from "../base/suggest.js";
import { isPlainObject, NumberLiteral } from "../io/json/lossless.js";
import { asciiDigits, pythonText } from "../io/python-text.js";
import type { Choice, ChoiceContext, FileKind, InputSpec } from "./inputs.js";

/** Types whose values are converted; all others are objects of the application. */
export const CONVERTED: ReadonlySet<string> = new Set(["INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"]);

const WIDGETS: ReadonlySet<string> = new Set(["INT", "FLOAT", "STRING", "BOOLEAN", "COMBO", "LIST", "*"]);

/** Lists of choices beyond this length are counted, not listed, in messages. */
const LISTED_CHOICES = 20;

// Texts of the ext nodes refuse lists and objects (`strict`); other nodes take anything, as in ComfyUI.
// Nodes that tell floats from integers (`literal`) get 7.0 as a NumberLiteral; a program's own 1.0 is 1.
/** Whether a graph may hold a value of this type itself; other types come through links. */
export function isWidget(type: string): boolean {
  return WIDGETS.has(type) || (type.includes(",") && type.split(",").some((member) => WIDGETS.has(member.trim())));
}

export interface ConvertOptions {
  /** Source of choices that depend on it: checkpoints, files. */
  context?: ChoiceContext;
  /** Leaves minimum, maximum and choices to the node's own validation. */
  skipRange?: boolean;
  /** Turns lists and objects for a STRING into text, as ComfyUI does for graphs; refused if absent. */
  anyText?: boolean;
}

/** Reason why a value does not fit; `value` is the converted value if it could be converted. */
export interface Misfit {
  readonly code: ErrorCode;
  readonly expected: string;
  readonly value: unknown;
  readonly suggestion?: string;
}

export type Conversion =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly misfit: Misfit };

/**
 * Converts one widget value by ComfyUI's rules: INT from 7, "7", " 7 ", 3.7 (3); FLOAT from numbers and their texts; STRING
 * from numbers and booleans; BOOLEAN from booleans, numbers, "true" and "false"; then range and choices. A seed (INT
 * with a maximum above 2^53) becomes a bigint, other INTs numbers. An absent optional input becomes its default.
 * Throws a LatentkitError that names node, input, value and what was expected.
 */
export function convertInput(
  spec: InputSpec,
  value: unknown,
  at: { nodeId?: string; node?: string; input: string },
  options: ConvertOptions = {},
): unknown {
  const conversion = tryConvert(spec, value, options);
  if (conversion.ok) return conversion.value;
  throw misfitError(conversion.misfit, at, value);
}

export function misfitError(
  misfit: Misfit,
  at: { nodeId?: string; node?: string; input: string },
  received: unknown,
): LatentkitError {
  return inputError(misfit.code, at, misfit.expected, received, misfit.suggestion);
}

/** Converts like `convertInput`, but returns a failure as data. */
export function tryConvert(spec: InputSpec, value: unknown, options: ConvertOptions = {}): Conversion {
  if (value === undefined || (value === null && (!spec.optional || !isWidget(spec.type)))) {
    if (!spec.optional) return misfit("input.missing", expectedOf(spec, options), value);
    const fallback = spec.options.default;
    return fallback === undefined ? { ok: true, value: undefined } : tryConvert(spec, fallback, options);
  }
  switch (spec.type) {
    case "INT":
      return toInt(spec, value, options);
    case "FLOAT":
      return toFloat(spec, value, options);
    case "STRING":
      return toText(spec, value, options);
    case "BOOLEAN":
      return toBoolean(spec, value, options);
    case "COMBO":
      return toChoice(spec, value, options);
    default:
      return { ok: true, value: spec.literal ? value : plain(value) };
  }
}

const misfit = (code: ErrorCode, expected: string, value: unknown, suggestion?: string): Conversion => ({
  ok: false,
  misfit: { code, expected, value, suggestion },
});

function toInt(spec: InputSpec, value: unknown, options: ConvertOptions): Conversion {
  const whole = readWhole(value);
  if (typeof whole === "string") return misfit(whole, expectedOf(spec, options), value);
  const { min, max } = spec.options;
  const isSeed = max !== undefined && max > Number.MAX_SAFE_INTEGER;
  const isSafe = whole >= Number.MIN_SAFE_INTEGER && whole <= Number.MAX_SAFE_INTEGER;
  const result = isSeed || !isSafe ? BigInt(whole) : Number(whole);
  if (!options.skipRange) {
    if (min !== undefined && result < min) return misfit("input.below-minimum", expectedOf(spec, options), result);
    if (max !== undefined && result > max) return misfit("input.above-maximum", expectedOf(spec, options), result);
  }
  return { ok: true, value: result };
}

/** Reads a whole number; returns an error code for any other value. */
function readWhole(value: unknown): number | bigint | ErrorCode {
  if (typeof value === "bigint") return value;
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "string") {
    const digits = asciiDigits(value.trim());
    if (!/^[+-]?[0-9]{1,4300}$/.test(digits)) return "input.wrong-type";
    return BigInt(digits.replace("+", ""));
  }
  if (typeof value !== "number" && !(value instanceof NumberLiteral)) return "input.wrong-type";
  const number = Math.trunc(Number(value));
  if (!Number.isFinite(number)) return "input.not-finite";
  return Number.isSafeInteger(number) ? number + 0 : BigInt(number);
}

const FLOAT_TEXT = /^[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)$/i;

function toFloat(spec: InputSpec, value: unknown, options: ConvertOptions): Conversion {
  const fail = (code: ErrorCode, received: unknown) => misfit(code, expectedOf(spec, options), received);
  let number: number;
  if (typeof value === "string") {
    const text = asciiDigits(value.trim());
    if (!FLOAT_TEXT.test(text)) return fail("input.wrong-type", value);
    number = /n/i.test(text) ? Number(text.replace(/inf\w*/i, "Infinity").replace(/[+-]?nan/i, "NaN")) : Number(text);
  } else if (
    typeof value === "number" ||
    typeof value === "bigint" ||
    typeof value === "boolean" ||
    value instanceof NumberLiteral
  ) {
    number = Number(value);
  } else {
    return fail("input.wrong-type", value);
  }
  const { min, max } = spec.options;
  if (Number.isNaN(number) && (min !== undefined || max !== undefined)) {
    return fail("input.not-finite", number);
  }
  if (!options.skipRange) {
    if (min !== undefined && number < min) return fail("input.below-minimum", number);
    if (max !== undefined && number > max) return fail("input.above-maximum", number);
  }
  const isBounded = min !== undefined || max !== undefined || typeof value === "bigint";
  if (!Number.isFinite(number) && isBounded) return fail("input.not-finite", number);
  return { ok: true, value: number };
}

function toText(spec: InputSpec, value: unknown, options: ConvertOptions): Conversion {
  const isScalar = typeof value !== "object" || value instanceof NumberLiteral;
  if (
    value === null ||
    typeof value === "function" ||
    typeof value === "symbol" ||
    (!isScalar && (spec.strict || !options.anyText))
  ) {
    return misfit("input.wrong-type", expectedOf(spec, options), value);
  }
  return { ok: true, value: typeof value === "string" ? value : pythonText(value) };
}

function toBoolean(spec: InputSpec, value: unknown, options: ConvertOptions): Conversion {
  if (typeof value === "boolean") return { ok: true, value };
  if (value === "true" || value === "false") return { ok: true, value: value === "true" };
  if (typeof value === "bigint") return { ok: true, value: value !== 0n };
  if (typeof value === "number" || value instanceof NumberLiteral) {
    const number = Number(value);
    if (Number.isNaN(number)) return misfit("input.not-finite", expectedOf(spec, options), value);
    return { ok: true, value: number !== 0 };
  }
  const { suggestion } = suggest(typeof value === "string" ? value.trim() : value, ["true", "false"]);
  return misfit("input.wrong-type", expectedOf(spec, options), value, suggestion);
}

/** Returns the choice as the list holds it: 1.0 and true match a listed 1, as in Python. */
function toChoice(spec: InputSpec, value: unknown, options: ConvertOptions): Conversion {
  // a file that cannot be loaded is not among the choices, and is refused with a better sentence
  const file = options.skipRange ? undefined : fileMeant(spec, value, options.context);
  if (file !== undefined) return { ok: true, value: file };
  const choices = choicesOf(spec, options.context);
  if (choices === undefined && spec.choices !== undefined && typeof value !== "string") {
    return misfit("input.wrong-type", "text", value);
  }
  if (choices === undefined || options.skipRange) return { ok: true, value: plain(value) };
  const number = numeric(value);
  const match =
    choices.find((choice) => choice === value || (number !== undefined && numeric(choice) === number)) ??
    spec.renamed?.get(value);
  if (match !== undefined) return { ok: true, value: match };
  const texts = choices.filter((choice): choice is string => typeof choice === "string");
  const suggestion = spec.files === undefined ? suggest(value, texts).suggestion : nearestFile(value, texts);
  return misfit("input.not-in-list", expectedOf(spec, options), value, suggestion);
}

/** File that a name probably means: endings, which most files share, do not count. */
function nearestFile(name: unknown, files: readonly string[]): string | undefined {
  if (typeof name !== "string") return undefined;
  const byBareName = new Map([...files].reverse().map((file) => [withoutEnding(file), file]));
  const { suggestion } = suggest(withoutEnding(name), byBareName.keys());
  return suggestion === undefined ? undefined : byBareName.get(suggestion);
}

const withoutEnding = (file: string): string => file.replace(/\.[a-z]{1,16}$/i, "");

/** The host's file that a name stands for without being its own. */
const fileMeant = ({ files }: InputSpec, name: unknown, context: ChoiceContext | undefined): string | undefined =>
  files === undefined || typeof name !== "string" ? undefined : context?.host?.fileOf?.(files, name);

/** Default of an input, the first choice of a fixed list, as in ComfyUI; undefined without one. */
export const defaultOf = ({ options, choices }: InputSpec): unknown =>
  options.default ?? (Array.isArray(choices) ? choices[0] : undefined);

/** Choices of an input, computed if they depend on the context. Throws value.invalid for anything but a list. */
export function choicesOf(spec: InputSpec, context: ChoiceContext | undefined): readonly Choice[] | undefined {
  const choices: unknown = typeof spec.choices === "function" ? spec.choices(context ?? {}) : spec.choices;
  if (choices === undefined || Array.isArray(choices)) return choices;
  throw valueError("value.invalid", "Choices of an input, or of a host's files", "a list, at once", choices);
}

function numeric(value: unknown): number | undefined {
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return Number(value);
  return value instanceof NumberLiteral ? Number(value) : undefined;
}

/** Replaces number literals at any depth of lists and plain objects by numbers; returns the value itself if there are none. */
export function plain(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null || depth > 256) return value;
  if (value instanceof NumberLiteral) return Number(value);
  if (Array.isArray(value)) {
    const items = value.map((item) => plain(item, depth + 1));
    return items.some((item, i) => !Object.is(item, value[i])) ? items : value;
  }
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, plain(item, depth + 1)] as const);
  return entries.some(([key, item]) => !Object.is(item, value[key])) ? Object.fromEntries(entries) : value;
}

/** Values that fit, in words: "a whole number from 0 to 10", "red, green or blue". */
export function expectedOf(spec: InputSpec, options: ConvertOptions = {}): string {
  const { min, max } = spec.options;
  const range =
    min !== undefined && max !== undefined
      ? ` from ${min} to ${max}`
      : min !== undefined
        ? ` of at least ${min}`
        : max !== undefined
          ? ` of at most ${max}`
          : "";
  if (spec.type === "INT") return `a whole number${range}`;
  if (spec.type === "FLOAT") return `a number${range}`;
  if (spec.type === "STRING") return "text";
  if (spec.type === "BOOLEAN") return "true or false";
  if (spec.type === "COMBO") return expectedChoice(choicesOf(spec, options.context), spec.files);
  return spec.type === "*" ? "a value" : spec.type;
}

function expectedChoice(choices: readonly Choice[] | undefined, files?: FileKind): string {
  if (choices === undefined) return "a choice";
  if (choices.length === 0 && files !== undefined) return `a file in ${files} (none there fits this input)`;
  if (choices.length === 0) return "one of the choices (this input has nothing to choose from)";
  if (choices.length > LISTED_CHOICES) return `one of ${choices.length} choices`;
  const names = choices.map(String);
  return names.length === 1 ? names[0]! : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
