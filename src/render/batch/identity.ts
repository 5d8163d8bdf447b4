import { createHash } from "node:crypto";
import { printJson } from "../../io/json-lossless.js";
import type { BatchOptions } from "./batch.js";

/** Hash of the graph and of all options that an item's pictures and their names depend on; folders may move. */
export function batchHash(prompt: object, options: BatchOptions): string {
  const { set, targets, classAliases, metadata, redact, extraPnginfo, name, setup } = options;
  const pictures = { prompt, set, targets, classAliases, metadata, redact, extraPnginfo, setup: setup?.href };
  const text = printJson({ ...pictures, name });
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
