import { HookError } from "../hooks/hook-error.js";
import { onlyValue } from "../hooks/http/page.js";
import type { RunSummary } from "../hooks/run.js";
import type { Scan } from "./described-runs.js";
import type { RunFacts } from "./run-facts.js";

const MOST_CHARACTERS = 200;
const MOST_MS = 8.64e15;

/** A test for the runs that a query looks for by `search`, `model`, `from` and `to`. Throws invalid_request. */
export function readSearch(query: URLSearchParams): Scan["matches"] {
  const words = (onlyValue(query, "search") ?? "")
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.join(" ").length > MOST_CHARACTERS) {
    throw new HookError("invalid_request", `search: expected at most ${MOST_CHARACTERS} characters`);
  }
  const model = onlyValue(query, "model");
  const from = readTime(query, "from") ?? -Infinity;
  const to = readTime(query, "to") ?? Infinity;
  return (run, facts) =>
    run.createdAt >= from &&
    run.createdAt < to &&
    (model === undefined || facts.models.includes(model)) &&
    hasWords(words, run, facts);
}

/** Every word stands somewhere in the run's facts, session, name, tags or id. */
function hasWords(
  words: readonly string[],
  { sessionKey, name, tags, id }: RunSummary,
  { searched }: RunFacts,
): boolean {
  if (words.length === 0) return true;
  const others = [sessionKey, name ?? "", ...tags, id].join("\n").toLowerCase();
  return words.every((word) => searched.includes(word) || others.includes(word));
}

/** Wall clock ms. */
function readTime(query: URLSearchParams, name: string): number | undefined {
  const text = onlyValue(query, name);
  if (text === undefined) return undefined;
  const ms = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (Math.abs(ms) <= MOST_MS) return ms;
  throw new HookError("invalid_request", `${name}: expected a time in milliseconds since 1970`);
}
