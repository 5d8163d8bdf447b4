import { describe } from "../base/errors.js";
import { NumberLiteral } from "../io/json/lossless.js";
import { asciiDigits } from "../io/python-text.js";
import type { InputSpec } from "./inputs.js";

/** Numbers are as long as Python reads them; messages are shorter. */
const LONGEST_NUMBER = 80;
const DECIMAL = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:e([+-]?[0-9]+))?$/i;
/** Exponents beyond those of a float. */
const MOST_SHIFTED = 5000;

/**
 * Both values, in words, if a node computes with a value other than the one its input received: "20.5 becomes 20".
 * Undefined if both mean the same, as 7 and 7.0 or the text "7" do. `converted` is what `tryConvert` made of `received`.
 */
export function bendOf(spec: InputSpec, received: unknown, converted: unknown): string | undefined {
  if (received === undefined) return undefined;
  const used = spec.used !== undefined && typeof converted === "number" ? spec.used(converted) : converted;
  if (meansSame(spec, received, used)) return undefined;
  return `${inWords(received)} becomes ${inWords(used)}`;
}

/** Reports numbers, by input as received and as used, that a node reduced to the end of its data. */
export function warnOfClips(
  data: string,
  clips: Readonly<Record<string, readonly [received: number, used: number]>>,
  log: (message: string) => void,
): void {
  for (const [input, [received, used]] of Object.entries(clips))
    if (received !== used) log(`input "${input}": ${received} becomes ${used}: the ${data} ends there.`);
}

function meansSame({ type }: InputSpec, received: unknown, used: unknown): boolean {
  if (received === used) return true;
  if (typeof received === "boolean") return false;
  if (typeof received === "string" && typeof used !== "number") return true;
  if (typeof used === "boolean") return Number(received) === 0 || Number(received) === 1;
  const text = textOf(received);
  if (text === undefined) return false;
  if (typeof used === "string") return Number(text) === Number(used) && wholeOf(text) === wholeOf(used);
  if (type === "FLOAT") return isKept(text, Number(used));
  return type === "INT" ? wholeOf(text) === BigInt(used as number | bigint) : Number(text) === Number(used);
}

/** Whether a float is the one nearest to a number's text; for a whole number, equal to it. */
function isKept(text: string, used: number): boolean {
  const parts = DECIMAL.exec(text);
  // inf and nan
  if (parts === null) return true;
  if (!Number.isFinite(used)) return false;
  const [, , whole, fraction = "", exponent] = parts;
  const isWhole = fraction === "" && exponent === undefined;
  return isWhole ? wholeOf(text) === BigInt(used) : used !== 0 || !/[1-9]/.test(`${whole}${fraction}`);
}

/** A number as it was written; undefined for anything else. */
function textOf(value: unknown): string | undefined {
  if (value instanceof NumberLiteral) return value.text;
  if (typeof value === "string") return asciiDigits(value.trim());
  return typeof value === "number" || typeof value === "bigint" ? String(value) : undefined;
}

/** The whole number that a decimal means, exactly; undefined for one with a fraction. */
function wholeOf(text: string): bigint | undefined {
  const [, sign, whole, fraction = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const digits = BigInt(`${whole}${fraction}` || "0") * (sign === "-" ? -1n : 1n);
  const shift = Number(exponent) - fraction.length;
  if (digits === 0n) return 0n;
  if (Math.abs(shift) > MOST_SHIFTED) return undefined;
  const unit = BigInt(`1${"0".repeat(Math.abs(shift))}`);
  if (shift >= 0) return digits * unit;
  return digits % unit === 0n ? digits / unit : undefined;
}

function inWords(value: unknown): string {
  const text = describe(value);
  return typeof value === "string" || text.length <= LONGEST_NUMBER ? text : `${text.slice(0, LONGEST_NUMBER - 3)}...`;
}
