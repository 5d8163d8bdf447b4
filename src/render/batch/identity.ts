import { createHash } from "node:crypto";
import { printJson } from "../../io/json-lossless.js";
import type { BatchOptions } from "./batch.js";
import type { JournalHeader } from "./journal/journal-records.js";
import type { ItemValues } from "./types.js";

/** Of the graph and all options that an item's pictures and their names depend on; folders may move. */
export function batchHash(prompt: object, options: BatchOptions): string {
  const { set, targets, classAliases, metadata, redact, extraPnginfo, name, setup } = options;
  const pictures = { prompt, set, targets, classAliases, metadata, redact, extraPnginfo, setup: setup?.href };
  const text = printJson({ ...pictures, name });
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/**
 * Of an item: 16 hexadecimal digits, the same for values in another order. One that could not be read is never taken
 * for another of the same values.
 */
export function itemKey(
  { graph, engine }: Pick<JournalHeader, "graph" | "engine">,
  values: ItemValues,
  isFaulty: boolean,
): string {
  const sorted = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1));
  const text = `${graph} ${engine} ${printJson(sorted)}${isFaulty ? " faulty" : ""}`;
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
