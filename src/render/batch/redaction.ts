import { isPlainObject } from "../../io/json/lossless.js";
import { placeholders } from "../fill/fill.js";
import type { ItemValues } from "../items/item.js";
import { REDACTED } from "../redact.js";

/**
 * Redacts an item's values for journal and contact sheet: those that go into an input which `redact` hides, also where
 * they fill a placeholder in it.
 */
export function createItemRedaction(
  prompt: Readonly<Record<string, unknown>>,
  redact: readonly string[] = [],
): (values: ItemValues) => ItemValues {
  if (redact.length === 0) return (values) => values;
  const redacted = new Set(redact);
  const hidden = new Set(redact);
  for (const [nodeId, node] of Object.entries(prompt)) {
    const inputs = isPlainObject(node) && isPlainObject(node.inputs) ? node.inputs : {};
    for (const [input, value] of Object.entries(inputs)) {
      const isHidden = [nodeId, input, `${nodeId}.${input}`].some((key) => redacted.has(key));
      if (isHidden) for (const key of placeholders(value)) hidden.add(key);
    }
  }
  // node ids and input names may hold dots themselves
  const isHidden = (key: string) =>
    hidden.has(key) || redact.some((part) => key.startsWith(`${part}.`) || key.endsWith(`.${part}`));
  return (values) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, isHidden(key) ? REDACTED : value]));
}
