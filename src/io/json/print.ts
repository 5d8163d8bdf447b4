import { escaped } from "../../base/controls.js";
import { LatentkitError } from "../../base/errors.js";
import { keysInOrder, MAX_DEPTH, NumberLiteral, recall } from "./values.js";

/** Prints a float as Python's repr does: 7.0, 1e-07, 1e+16, nan, inf. */
export function pythonNumber(x: number): string {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (x === 0) return Object.is(x, -0) ? "-0.0" : "0.0";
  const [mantissa, power] = x.toExponential().split("e") as [string, string];
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const digits = mantissa.replace(/[-.]/g, "");
  const whole = exponent < 0 ? "0" : digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  const rest = exponent < 0 ? "0".repeat(-exponent - 1) + digits : digits.slice(exponent + 1);
  return `${x < 0 ? "-" : ""}${whole}.${rest === "" ? "0" : rest}`;
}

/**
 * Prints JSON in the layout of Python's json.dumps: ", " and ": ", ASCII only. Literals print verbatim, bigints as digits,
 * safe integers plain, other numbers as Python's repr, non-finite ones as null. Throws on nesting beyond 256 levels.
 */
export function printJson(value: unknown): string {
  return print(value, ASCII, "", 0) ?? "null";
}

/** Prints JSON like `printJson`, with an indent of 4 and unescaped non-ASCII characters. */
export const printJsonPretty = (value: unknown): string =>
  print(value, { indent: "    ", quote: JSON.stringify }, "\n", 0) ?? "null";

/** Prints JSON like `printJson`, with unescaped non-ASCII characters: a long text takes a tenth of the time. */
export const printJsonUnicode = (value: unknown): string => print(value, UNICODE, "", 0) ?? "null";

/** Prints JSON like `printJsonUnicode`, but NaN and infinities as Python does: NaN, Infinity, -Infinity. */
export const printNonFinite = (value: unknown): string =>
  print(value, { ...UNICODE, nonFinite: true }, "", 0) ?? "null";

interface Layout {
  /** Indent of one level; "" prints on one line. */
  readonly indent: string;
  readonly quote: (text: string) => string;
  readonly nonFinite?: boolean;
}

const ASCII: Layout = { indent: "", quote };
const UNICODE: Layout = { indent: "", quote: JSON.stringify };

const PRINTED = Symbol("printed");

/** Prints a value; undefined for one that JSON does not have. `newline` is the line break and indent of the current level. */
function print(value: unknown, layout: Layout, newline: string, depth: number): string | undefined {
  if (typeof value === "string") return layout.quote(value);
  if (typeof value === "number")
    return layout.nonFinite && !Number.isFinite(value) ? String(value) : printNumber(value);
  if (typeof value === "bigint" || typeof value === "boolean" || value === null) return String(value);
  if (value instanceof NumberLiteral) return value.text;
  if (typeof value !== "object") return undefined;
  const members = () => printMembers(value, layout, newline, depth);
  return layout === ASCII ? recall(value, PRINTED, members) : members();
}

function printMembers(value: object, layout: Layout, newline: string, depth: number): string {
  if (depth >= MAX_DEPTH) {
    throw new LatentkitError("value.invalid", `Value to print as JSON: expected at most ${MAX_DEPTH} nested levels.`);
  }
  const inner = newline + layout.indent;
  const parts: string[] = [];
  if (Array.isArray(value)) {
    for (const item of value) parts.push(print(item, layout, inner, depth + 1) ?? "null");
  } else {
    for (const key of keysInOrder(value)) {
      const printed = print((value as Record<string, unknown>)[key], layout, inner, depth + 1);
      if (printed !== undefined) parts.push(`${layout.quote(key)}: ${printed}`);
    }
  }
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (parts.length === 0) return open + close;
  return layout.indent === ""
    ? open + parts.join(", ") + close
    : `${open}${inner}${parts.join(`,${inner}`)}${newline}${close}`;
}

function printNumber(x: number): string {
  if (!Number.isFinite(x)) return "null";
  return Number.isSafeInteger(x) && !Object.is(x, -0) ? String(x) : pythonNumber(x);
}

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** Units that a text in ASCII escapes. */
const SPECIAL = /[^ -~]|["\\]/g;

function quote(text: string): string {
  // searching is faster than replacing, and most texts need no escapes
  if (text.search(SPECIAL) === -1) return `"${text}"`;
  if (text.length > LONGEST_REPLACED) return quoteLong(text);
  return `"${text.replace(SPECIAL, (unit) => SHORT[unit] ?? escaped(unit))}"`;
}

/** Longer texts are escaped unit by unit: a call for each character of a long prompt in emoji takes a second. */
const LONGEST_REPLACED = 1000;
const [QUOTE, BACKSLASH, U] = [0x22, 0x5c, 0x75];
const HEX = Buffer.from("0123456789abcdef");
/** Letter behind the backslash of each unit that has a short escape; 0 for others. */
const LETTERS = Uint8Array.from({ length: 128 }, (_, unit) => SHORT[String.fromCharCode(unit)]?.charCodeAt(1) ?? 0);

/** A text as `quote` gives it. */
function quoteLong(text: string): string {
  let length = 2;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 128 && LETTERS[unit] !== 0) length += 2;
    else length += unit >= 32 && unit < 127 ? 1 : 6;
  }
  const out = Buffer.allocUnsafe(length);
  let at = 0;
  out[at++] = QUOTE;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    const letter = unit < 128 ? LETTERS[unit]! : 0;
    if (letter !== 0) {
      out[at++] = BACKSLASH;
      out[at++] = letter;
    } else if (unit >= 32 && unit < 127) {
      out[at++] = unit;
    } else {
      out[at++] = BACKSLASH;
      out[at++] = U;
      for (let shift = 12; shift >= 0; shift -= 4) out[at++] = HEX[(unit >> shift) & 15]!;
    }
  }
  out[at] = QUOTE;
  return out.toString("latin1");
}
