import type { RunProgress } from "../types.js";

const LONGEST_DATA = 1024;

/**
 * Progress that an event tells: a node's, by `progress { value, max, node }`, or the run's, by `node_done { done, nodes }`,
 * with null as node; undefined where it says nothing of that form.
 */
export function readProgress(event: string, data: string): RunProgress | undefined {
  if ((event !== "progress" && event !== "node_done") || data.length > LONGEST_DATA) return undefined;
  const told = (JSON.parse(data) ?? {}) as Record<string, unknown>;
  const { value, max, node } = event === "progress" ? told : { value: told.done, max: told.nodes, node: null };
  if (typeof value !== "number" || typeof max !== "number") return undefined;
  return { value, max, node: typeof node === "string" || typeof node === "number" ? String(node) : null };
}
