import { describe } from "../../errors.js";
import { plain } from "../../nodes/values.js";
import type { Entry } from "../memory/cache.js";
import type { PreparedNode } from "../prepared.js";

/** Outputs for events and results: the value of an output that has one, the list of values of any other. */
export function shown({ definition }: PreparedNode, { outputs }: Entry): unknown[] {
  return outputs.map((values, slot) => {
    const { type, list } = definition.outputs[slot]!;
    const value = values.length === 1 && !list ? values[0] : [...values];
    return type === "*" ? plain(value) : value;
  });
}

const MAX_SHOWN = 16;

/** Inputs for an error event: scalars as they are, the rest in words, long lists cut. */
export function summarise(lists: Readonly<Record<string, readonly unknown[]>>): Record<string, unknown[]> {
  const shown = (value: unknown): unknown =>
    value === null || typeof value === "number" || typeof value === "boolean" || typeof value === "bigint"
      ? value
      : typeof value === "string" && value.length <= 80
        ? value
        : value === undefined
          ? null
          : describe(value);
  return Object.fromEntries(Object.entries(lists).map(([input, list]) => [input, list.slice(0, MAX_SHOWN).map(shown)]));
}
