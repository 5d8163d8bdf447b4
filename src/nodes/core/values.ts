import { describe } from "../../base/errors.js";
import { keysInOrder, NumberLiteral, rememberOrder } from "../../io/json/lossless.js";
import { printJsonPretty } from "../../io/json/print.js";
import { pythonText } from "../../io/python-text.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { any, boolean, float, int, text } from "../inputs.js";
import { plain } from "../values.js";

export const valueNodes = [
  defineNode({
    key: "MarkdownNote",
    displayName: "Markdown Note",
    category: "utils",
    description: "A remark in Markdown beside a graph, without effect.",
    inputs: { text: text({ optional: true, multiline: true, default: "" }) },
    outputs: {},
    run: () => [],
  }),
  defineNode({
    key: "Note",
    category: "utils",
    description: "A remark beside a graph, without effect.",
    inputs: { text: text({ optional: true, multiline: true, default: "" }) },
    outputs: {},
    run: () => [],
  }),
  defineNode({
    key: "PrimitiveBoolean",
    displayName: "Boolean",
    category: "utils/primitive",
    description: "True or false.",
    inputs: { value: boolean() },
    outputs: { BOOLEAN: "BOOLEAN" },
    run: ({ value }) => ({ BOOLEAN: value }),
  }),
  defineNode({
    key: "PrimitiveFloat",
    displayName: "Float",
    category: "utils/primitive",
    description: "A number.",
    inputs: { value: float({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }) },
    outputs: { FLOAT: "FLOAT" },
    run: ({ value }) => ({ FLOAT: value }),
  }),
  defineNode({
    key: "PrimitiveInt",
    displayName: "Int",
    category: "utils/primitive",
    description: "A whole number.",
    inputs: { value: int() },
    outputs: { INT: "INT" },
    run: ({ value }) => ({ INT: value }),
  }),
  // the editor resolves it; graphs written by programs hold it
  defineNode({
    key: "PrimitiveNode",
    displayName: "Primitive",
    category: "utils",
    description: "A value of the editor, passed on as it is.",
    inputs: { value: any() },
    outputs: { value: "*" },
    run: ({ value }) => ({ value }),
  }),
  defineNode({
    key: "PrimitiveString",
    displayName: "String",
    category: "utils/primitive",
    description: "A text.",
    inputs: { value: text() },
    outputs: { STRING: "STRING" },
    run: ({ value }) => ({ STRING: value }),
  }),
  defineNode({
    key: "PrimitiveStringMultiline",
    displayName: "String (Multiline)",
    category: "utils/primitive",
    description: "A text of several lines.",
    inputs: { value: text({ multiline: true }) },
    outputs: { STRING: "STRING" },
    run: ({ value }) => ({ STRING: value }),
  }),
  // the editor resolves it; graphs written by programs hold it
  defineNode({
    key: "Reroute",
    category: "utils",
    description: "A bend of a link: its value, passed on as it is.",
    inputs: { "": any() },
    outputs: [{ name: "", type: "*" }],
    run: ({ "": value }) => [value],
  }),
  defineNode({
    key: "PreviewAny",
    displayName: "Preview as Text",
    category: "utils",
    description: "Shows any value as text.",
    inputs: { source: any({ literal: true }) },
    outputs: { STRING: "STRING" },
    outputNode: true,
    hasUi: true,
    run: ({ source }) => {
      const shown = String(plain(valueText(source)));
      return { result: [shown], ui: { text: [shown] } };
    },
  }),
  defineNode({
    key: "StringConcatenate",
    displayName: "Concatenate",
    category: "utils/string",
    description: "Two texts with a third one between them.",
    inputs: {
      string_a: text({ multiline: true }),
      string_b: text({ multiline: true }),
      delimiter: text({ default: "" }),
    },
    outputs: { STRING: "STRING" },
    run: ({ string_a, string_b, delimiter }) => ({ STRING: `${string_a}${delimiter}${string_b}` }),
  }),
] as const;

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

/** Replaces values that JSON cannot hold (tensors, functions, NaN, loops) by words; keys keep their order. */
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
