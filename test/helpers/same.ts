import assert from "node:assert/strict";

/**
 * Checks that a list has these very objects. deepEqual takes two with the same values for equal, and does not see private
 * fields.
 */
export function assertSame(actual: readonly unknown[], expected: readonly unknown[]): void {
  assert.equal(actual.length, expected.length);
  for (const [index, value] of expected.entries()) assert.ok(Object.is(actual[index], value), `object ${index}`);
}
