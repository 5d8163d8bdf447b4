import { describe } from "../base/errors.js";
import { NumberLiteral, pythonNumber } from "./json/lossless.js";

/** Prints a value as Python's str does: 5, 7.0, True, None, ['a', {'b': 1}]. */
export function pythonText(value: unknown, depth = 0): string {
  if (typeof value === "string") return depth === 0 ? value : pythonQuote(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value === null || value === undefined) return "None";
  if (typeof value === "number") {
    return Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : pythonNumber(value);
  }
  if (typeof value === "bigint") return String(value);
  if (value instanceof NumberLiteral) return value.text === "-0" ? "0" : pythonNumber(Number(value));
  if (typeof value !== "object" || depth > 32) return describe(value);
  if (Array.isArray(value)) return `[${value.map((item) => pythonText(item, depth + 1)).join(", ")}]`;
  const entries = Object.entries(value).map(([key, item]) => `${pythonQuote(key)}: ${pythonText(item, depth + 1)}`);
  return `{${entries.join(", ")}}`;
}

function pythonQuote(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text
    .replace(/\\/g, "\\\\")
    .replace(/\n/g, "\\n")
    .replace(/\r/g, "\\r")
    .replace(/\t/g, "\\t")
    .replaceAll(quote, `\\${quote}`);
  return quote + escaped + quote;
}

/** Replaces decimal digits of any script by 0 to 9, as Python reads them. */
export function asciiDigits(text: string): string {
  const digits = new Map<string, string>();
  return text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    const value = digits.get(digit) ?? asciiDigit(digit);
    digits.set(digit, value);
    return value;
  });
}

/** Value of a digit: those of a script are consecutive, and some scripts follow each other without a gap. */
function asciiDigit(digit: string): string {
  const code = digit.codePointAt(0)!;
  let run = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(code - run - 1))) run++;
  return String(run % 10);
}
