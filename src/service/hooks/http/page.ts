import { describe, suggest } from "../../../base/errors.js";
import { HookError } from "../hook-error.js";

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 200;

/** Value of a parameter; undefined where it is absent or empty. Throws invalid_request where it is repeated. */
export function onlyValue(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw new HookError("invalid_request", `${name}: expected at most one`);
  return values[0] === "" ? undefined : values[0];
}

/** Throws invalid_request for a parameter of another name: a misspelt filter would list what was not asked for. */
export function refuseUnknown(query: URLSearchParams, known: readonly string[]): void {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const expected = `expected parameters of the names ${known.join(", ")}`;
  const { hint } = suggest(unknown, known);
  throw new HookError("invalid_request", `${expected}, received ${describe(unknown)}.${hint}`);
}

/** Number of entries of a page. Throws invalid_request. */
export function pageSize(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PAGE;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw new HookError("invalid_request", "limit: expected an integer of 1 or more");
  return Math.min(limit, LARGEST_PAGE);
}
