import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";

/** Rejects with a LatentkitError of that code, whose message matches each pattern; returns it. */
export async function refuses(
  work: Promise<unknown> | (() => unknown),
  code: string | RegExp,
  ...patterns: RegExp[]
): Promise<LatentkitError> {
  let error: unknown;
  try {
    await (typeof work === "function" ? work() : work);
  } catch (caught) {
    error = caught;
  }
  assert.ok(error instanceof LatentkitError, `expected a LatentkitError, received ${String(error)}`);
  if (typeof code === "string") assert.equal(error.code, code, error.message);
  else assert.match(error.code, code, error.message);
  for (const pattern of patterns) assert.match(error.message, pattern);
  return error;
}
