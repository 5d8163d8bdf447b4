import { isPlainObject, MAX_DEPTH, NumberLiteral } from "../../io/json/lossless.js";
import type { ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import { choicesOf } from "../../nodes/values.js";

/** An input of a node, with what is needed to describe it. */
export interface CheckedInput {
  readonly nodeId: string;
  readonly node: string;
  readonly input: string;
  readonly spec: InputSpec;
  readonly context: ChoiceContext;
}

/** Choices beyond this number are counted in the details, and left out of input_config. */
export const LISTED_CHOICES = 20;

/** Declaration of the input in ComfyUI's form: [type or list of choices, options]; null for long lists. */
export function inputConfig({ spec, context }: CheckedInput): unknown {
  const choices = choicesOf(spec, context);
  if (choices !== undefined && choices.length > LISTED_CHOICES) return null;
  return jsonValue([comfyTypeOf(spec, context), spec.options]);
}

/** Type of the input in ComfyUI's form: a list of choices, or the name of the type. */
export function comfyTypeOf(spec: InputSpec, context: ChoiceContext): unknown {
  const isListed = spec.type === "COMBO" && spec.options.options === undefined;
  return isListed ? (choicesOf(spec, context) ?? spec.type) : spec.type;
}

/** Makes a value printable as JSON: integers beyond 2^53 become text. */
export function jsonValue(value: unknown, depth = 0): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof NumberLiteral) return Number(value);
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item) => jsonValue(item, depth + 1));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonValue(item, depth + 1)]));
}
