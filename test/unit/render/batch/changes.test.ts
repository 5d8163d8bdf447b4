import assert from "node:assert/strict";
import { NumberLiteral } from "#src/io/json-lossless.js";
import { createChanges } from "#src/render/batch/changes.js";

describe("createChanges", () => {
  it("tells which values the item before did not have, by what they print as", () => {
    const changes = createChanges();
    assert.deepEqual(changes({ a: 1, b: [1], c: 2n ** 64n }), ["a", "b", "c"]);
    assert.deepEqual(changes({ a: 1, b: [1], c: 2n ** 64n }), []);
    assert.deepEqual(changes({ a: new NumberLiteral("1.0"), b: [2], c: 2n ** 64n, d: null }), ["a", "b", "d"]);
    assert.deepEqual(changes({ d: null }), []);
    assert.deepEqual(changes({ a: 1, d: null }), ["a"]);
  });
});
