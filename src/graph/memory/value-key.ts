import { createHash } from "node:crypto";
import { isPlainObject, NumberLiteral } from "../../io/json/lossless.js";
import { pythonText } from "../../io/python-text.js";

/** Longer texts are hashed. */
const MAX_TEXT = 512;
const MAX_DEPTH = 32;

/** Returns the key of a value that has no text: a function, an instance, a symbol, a long or deep structure. */
export type OpaqueKey = (value: unknown) => string;

/**
 * Returns a text that is equal for equal values only. 1, 1.0 and true are one INT; for an input of any type 1 is not 1.0.
 * NaN equals itself.
 */
export function valueKey(value: unknown, type: string, opaque: OpaqueKey, depth = 0): string {
  switch (typeof value) {
    case "string":
      return value.length > MAX_TEXT
        ? `h${createHash("sha256").update(value).digest("base64")}`
        : `s${value.length}:${value}`;
    case "number":
      return Object.is(value, -0) ? "n-0" : `n${value}`;
    case "bigint":
      return `n${value}`;
    case "boolean":
      return type === "INT" || type === "FLOAT" ? `n${Number(value)}` : `b${value}`;
    case "undefined":
      return "u";
    case "object":
      return value === null ? "z" : objectKey(value, opaque, depth);
    default:
      return opaque(value);
  }
}

function objectKey(value: object, opaque: OpaqueKey, depth: number): string {
  if (value instanceof NumberLiteral) return `n${pythonText(value)}`;
  if (depth < MAX_DEPTH && Array.isArray(value) && value.length <= MAX_TEXT) {
    return `[${value.map((item) => valueKey(item, "", opaque, depth + 1)).join()}]`;
  }
  if (depth < MAX_DEPTH && isPlainObject(value)) {
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, item]) => `${key.length}:${key}${valueKey(item, "", opaque, depth + 1)}`).join()}}`;
  }
  return opaque(value);
}
