import type { RunProgress } from "../types.js";

const LONGEST_DATA = 1024;

/** The data of a progress event, `{ value, max, node }`; undefined where it says nothing of that form. */
export function readProgress(data: string): RunProgress | undefined {
  if (data.length > LONGEST_DATA) return undefined;
  const { value, max, node } = (JSON.parse(data) ?? {}) as Record<string, unknown>;
  if (typeof value !== "number" || typeof max !== "number") return undefined;
  return { value, max, node: typeof node === "string" || typeof node === "number" ? String(node) : null };
}
