import { inputError } from "../../base/errors.js";
import { NumberLiteral } from "../../io/json/lossless.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { any } from "../inputs.js";

const KEY = "ext if";

export const ifNode = defineNode({
  key: KEY,
  description: "Returns `if` where `any` is true as in Python, else `else`. Only the chosen branch is computed.",
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
  if (typeof value === "object") return !isPlain(value) || Object.keys(value).length > 0;
  return Boolean(value);
}

function truthOfElements(elements: ArrayLike<number | bigint>, value: unknown): boolean {
  if (elements.length === 1) return elements[0] !== 0 && elements[0] !== 0n;
  const expected = "a condition with one truth (that of several or no elements is ambiguous)";
  throw inputError("input.invalid", { node: KEY, input: "any" }, expected, value);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
