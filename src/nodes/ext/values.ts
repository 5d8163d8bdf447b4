import { inputError } from "../../base/errors.js";
import { isPlainObject, NumberLiteral } from "../../io/json/lossless.js";
import { Tensor } from "../../tensor/tensor.js";
import { valueText } from "../core/values.js";
import { defineNode } from "../define.js";
import { any, pipe } from "../inputs.js";
import { plain } from "../values.js";

const IF_KEY = "ext if";

export const ifNode = defineNode({
  key: IF_KEY,
  description: "Returns `if` when `any` is true as in Python, else `else`. Only the chosen branch is computed.",
  deprecated: true,
  inputs: { any: any(), if: any({ lazy: true, literal: true }), else: any({ lazy: true, literal: true }) },
  outputs: [{ name: "?", type: "*", list: false }],
  checkLazy: (inputs) => {
    const branch = isTruthy(inputs.any) ? "if" : "else";
    return inputs[branch] === undefined ? [branch] : [];
  },
  run: (inputs) => [isTruthy(inputs.any) ? inputs.if : inputs.else],
});

/** Truth as in Python, which differs from JavaScript's for [], {} and NaN. Fails for a tensor of several or no elements. */
function isTruthy(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === "number") return value !== 0;
  if (value instanceof NumberLiteral) return Number(value) !== 0;
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Tensor) return truthOfElements(value.data, value);
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return truthOfElements(value as unknown as ArrayLike<number | bigint>, value);
  }
  if (value instanceof Map || value instanceof Set) return value.size > 0;
  if (typeof value === "object") return !isPlainObject(value) || Object.keys(value).length > 0;
  return Boolean(value);
}

function truthOfElements(elements: ArrayLike<number | bigint>, value: unknown): boolean {
  if (elements.length === 1) return elements[0] !== 0 && elements[0] !== 0n;
  const expected = "a single value (the truth of several or no elements is ambiguous)";
  throw inputError("input.invalid", { node: IF_KEY, input: "any" }, expected, value);
}

/**
 * Shows a value on a node of the workflow in extra_pnginfo, so that saved images hold it: the first node whose id, as
 * text, is `uniqueId` gets `widgets_values = [value]`. Does nothing if there is none.
 */
function setWidgetValues(extraPnginfo: unknown, uniqueId: string | undefined, value: unknown): void {
  if (uniqueId === undefined) return;
  const nodes = property(property(extraPnginfo, "workflow"), "nodes");
  if (!Array.isArray(nodes)) return;
  const node: unknown = nodes.find((candidate) => {
    const id = property(candidate, "id");
    return id !== undefined && id !== null && String(id) === uniqueId;
  });
  // a frozen workflow stays as it is
  if (typeof node === "object" && node !== null) Reflect.set(node, "widgets_values", [value]);
}

function property(object: unknown, key: string): unknown {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, key)) return undefined;
  return (object as Record<string, unknown>)[key];
}

// null stays null; an absent value is "".
export const showSpentTime = defineNode({
  key: "ext showSpentTime",
  description: "Shows the time that loading and sampling took, as the pipe holds it.",
  deprecated: true,
  inputs: { pipe: pipe() },
  outputs: {},
  hidden: { unique_id: "UNIQUE_ID", extra_pnginfo: "EXTRA_PNGINFO" },
  outputNode: true,
  hasUi: true,
  run: ({ pipe, unique_id, extra_pnginfo }) => {
    const { spent_time: spent = "" } = pipe.loader_settings ?? {};
    setWidgetValues(extra_pnginfo, unique_id, spent);
    return { result: [], ui: { text: [spent] } };
  },
});

/** A longer list becomes one text. */
const MAX_LISTED_ITEMS = 30;

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
    else values.push(valueText(item));
  }
  return values;
}
