import assert from "node:assert/strict";
import type { Context } from "mocha";

/** Skips a test that this machine cannot run, and prints why. Under CI nothing is skipped: there it fails. */
export function skip(test: Context, reason: string): never {
  assert.notEqual(process.env.CI, "true", `may not be skipped under CI: ${reason}`);
  process.stdout.write(`      skipped: ${reason}\n`);
  return test.skip();
}
