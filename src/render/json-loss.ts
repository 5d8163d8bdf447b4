import { describe, type ErrorCode, LatentkitError } from "../base/errors.js";
import { isPlainObject, MAX_DEPTH, mayLackDigits, NumberLiteral } from "../io/json/lossless.js";

/** Further losses that count, and values that JSON may lose. */
export interface Strictness {
  /** Numbers whose last digits JavaScript may have rounded count as lost. */
  readonly digits?: boolean;
  /** A key whose value is undefined counts as an absent key. */
  readonly absent?: boolean;
}

/** Throws an error of this code, which names subject and key, for a value of which JSON would lose something. */
export function refuseLoss(
  subject: string,
  key: string,
  value: unknown,
  code: ErrorCode,
  strictness: Strictness = {},
): void {
  const lost = lostIn(value, 0, strictness);
  if (lost === undefined) return;
  const expected =
    typeof lost.value === "number" && mayLackDigits(lost.value)
      ? "a whole number beyond 2^53 as a bigint or text, with all its digits"
      : "a text, a number, true, false, null, or a list or plain object of these";
  const received = typeof lost.value === "symbol" ? "a symbol" : describe(lost.value);
  throw new LatentkitError(code, `${subject}, ${key}: expected ${expected}, received ${received}.`);
}

/** The first value inside that JSON would lose; undefined where there is none. */
function lostIn(value: unknown, depth: number, strictness: Strictness): { readonly value: unknown } | undefined {
  if (typeof value === "number") {
    return Number.isFinite(value) && !(strictness.digits && mayLackDigits(value)) ? undefined : { value };
  }
  if (value === null || ["string", "bigint", "boolean"].includes(typeof value)) return undefined;
  if (value === undefined && strictness.absent) return undefined;
  if (value instanceof NumberLiteral) return undefined;
  if (depth >= MAX_DEPTH || !(Array.isArray(value) || isPlainObject(value))) return { value };
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    const lost = lostIn(inner, depth + 1, strictness);
    if (lost !== undefined) return lost;
  }
  return undefined;
}
