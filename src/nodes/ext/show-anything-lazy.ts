import { describe } from "../../base/errors.js";
import { keysInOrder, NumberLiteral, rememberOrder } from "../../io/json/lossless.js";
import { printJsonPretty } from "../../io/json/print.js";
import { pythonText } from "../../io/python-text.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { any } from "../inputs.js";
import { plain } from "../values.js";
import { setWidgetValues } from "./workflow-node.js";

/** A longer list becomes one text. */
const MAX_LISTED_ITEMS = 30;
const MAX_DEPTH = 64;

export const showAnythingLazy = defineNode({
  key: "ext showAnythingLazy",
  description: "Shows any values as text and passes the texts on.",
  deprecated: true,
  inputs: { anything: any({ optional: true, literal: true }) },
  outputs: { output: "*" },
  hidden: { unique_id: "UNIQUE_ID", extra_pnginfo: "EXTRA_PNGINFO" },
  inputIsList: true,
  hasUi: true,
  run: ({ anything, unique_id, extra_pnginfo }) => {
    const values = textsOf(anything ?? []);
    setWidgetValues(extra_pnginfo, unique_id, [...values]);
    return {
      result: [values.length === 1 ? values[0] : values],
      ui: { text: [...values].map((value) => plain(value)) },
    };
  },
});

/** Makes a text of each value; null is skipped, and a list of up to 30 items replaces the texts before it. */
function textsOf(items: readonly unknown[]): unknown[] {
  let values: unknown[] = [];
  for (const item of items) {
    if (item === null || item === undefined) continue;
    if (Array.isArray(item) && item.length <= MAX_LISTED_ITEMS) values = [...item];
    else values.push(textOf(item));
  }
  return values;
}

function textOf(value: unknown): string {
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
