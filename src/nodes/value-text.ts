import { describe } from "../base/errors.js";
import { keysInOrder, NumberLiteral, rememberOrder } from "../io/json/lossless.js";
import { printJsonPretty } from "../io/json/print.js";
import { pythonText } from "../io/python-text.js";
import { Tensor } from "../tensor/tensor.js";

const MAX_DEPTH = 64;

/** A value as text: objects and lists as JSON, tensors by their shape, the rest as Python prints it. */
export function valueText(value: unknown): string {
  if (value instanceof Tensor) return nameOf(value);
  if (typeof value === "object" && value !== null && !(value instanceof NumberLiteral)) {
    return printJsonPretty(printable(value, []));
  }
  return typeof value === "function" || typeof value === "symbol" ? describe(value) : pythonText(value);
}

const nameOf = (tensor: Tensor): string => `Tensor [${tensor.shape.join(",")}] float32`;

/** Replaces what JSON cannot hold (tensors, functions, NaN, loops) by words; keys keep their order. */
function printable(value: unknown, path: readonly object[]): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) return new NumberLiteral(jsonWord(value));
  if (typeof value === "function" || typeof value === "symbol") return describe(value);
  if (typeof value !== "object" || value === null || value instanceof NumberLiteral) return value;
  if (value instanceof Tensor) return nameOf(value);
  if (ArrayBuffer.isView(value)) return `${value.constructor.name} [${value.byteLength} bytes]`;
  if (path.includes(value) || path.length >= MAX_DEPTH) return "...";
  const inner = [...path, value];
  if (Array.isArray(value)) return value.map((item) => printable(item, inner));
  const keys = keysInOrder(value);
  const out = Object.fromEntries(keys.map((key) => [key, printable((value as Record<string, unknown>)[key], inner)]));
  rememberOrder(out, keys);
  return out;
}

const jsonWord = (value: number): string => (Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
