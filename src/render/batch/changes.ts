import { printJson } from "../../io/json-lossless.js";
import type { ItemValues } from "./types.js";

/**
 * Tells for one item after the other which keys have other values than in the item before: what follows from these is
 * not worth keeping, as seeds run through while the rest stays. Of the first item that is every key.
 */
export function createChanges(): (values: ItemValues) => string[] {
  let before = new Map<string, string>();
  return (values) => {
    const now = new Map(Object.entries(values).map(([key, value]) => [key, printJson(value)]));
    const changed = [...now.keys()].filter((key) => now.get(key) !== before.get(key));
    before = now;
    return changed;
  };
}
