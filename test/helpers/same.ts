import assert from "node:assert/strict";

/** Checks that a list has these very objects: deepEqual takes two with other private fields for equal. */
export function assertSame(actual: readonly unknown[], expected: readonly unknown[]): void {
  assert.equal(actual.length, expected.length);
  for (const [index, value] of expected.entries()) assert.ok(Object.is(actual[index], value), `object ${index}`);
}
