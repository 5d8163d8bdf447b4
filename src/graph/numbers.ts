import { LatentkitError } from "../base/errors.js";
import { isFrozenJson, isPlainObject, MAX_DEPTH, mayLackDigits } from "../io/json/lossless.js";

type Prompt = Readonly<Record<string, unknown>>;

/**
 * Throws graph.invalid, which names node and input, for a whole number beyond 2^53 that is no bigint: JSON.parse, and with
 * it the import of a JSON file, silently rounds them.
 */
export function refuseLostDigits(prompt: Prompt): void {
  const hint =
    "which JavaScript rounds beyond 2^53; give the number as text or bigint, or the graph as text, a path or what parseGraphText returns";
  refuse(prompt, mayLackDigits, "a whole number with all its digits", `, ${hint}`);
}

/** Throws graph.invalid, which names node and input, for NaN and infinities, which Python writes and JSON does not have. */
export function refuseNonFinite(prompt: Prompt): void {
  refuse(prompt, (number) => !Number.isFinite(number), "a finite number", "");
}

function refuse(prompt: Prompt, isBad: (number: number) => boolean, expected: string, hint: string): void {
  for (const [nodeId, node] of Object.entries(prompt)) {
    // frozen JSON came from text, which keeps every digit, and was checked before
    if (!isPlainObject(node) || isFrozenJson(node) || !isPlainObject(node.inputs)) continue;
    for (const [input, value] of Object.entries(node.inputs)) {
      const bad = findNumber(value, isBad, 0);
      if (bad === undefined) continue;
      const message = `Node ${nodeId}, input "${input}": expected ${expected}, received ${bad}${hint}.`;
      throw new LatentkitError("graph.invalid", message, { nodeId, input, expected, received: String(bad) });
    }
  }
}

function findNumber(value: unknown, isBad: (number: number) => boolean, depth: number): number | undefined {
  if (typeof value === "number") return isBad(value) ? value : undefined;
  if (!Array.isArray(value) && !isPlainObject(value)) return undefined;
  if (depth >= MAX_DEPTH)
    throw new LatentkitError("graph.invalid", `Graph: nesting is deeper than ${MAX_DEPTH} levels.`);
  for (const inner of Object.values(value)) {
    const number = findNumber(inner, isBad, depth + 1);
    if (number !== undefined) return number;
  }
  return undefined;
}
