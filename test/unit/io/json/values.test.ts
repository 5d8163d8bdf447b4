import assert from "node:assert/strict";
import { freezeJson, isFrozenJson, parseJson, printJson, recall } from "#src/io/json/lossless.js";

const WHAT = Symbol("what");

describe("io/json/frozen", () => {
  const count = (value: object, on?: readonly unknown[], isKept?: (found: number) => boolean) => {
    let calls = 0;
    for (let i = 0; i < 3; i++) recall(value, WHAT, () => ++calls, on, isKept);
    return calls;
  };

  it("freezes a value and all in it", () => {
    const value = parseJson('{"a": [{"b": 7.0}], "10": {}, "2": 1}') as { a: { b: unknown }[] };
    assert.equal(isFrozenJson(value), false);
    freezeJson(value);
    assert.equal(isFrozenJson(value), true);
    assert.throws(() => value.a.push({ b: 1 }), TypeError);
    assert.throws(() => {
      value.a[0]!.b = 1;
    }, TypeError);
    assert.equal(printJson(value), '{"a": [{"b": 7.0}], "10": {}, "2": 1}');
    assert.equal(printJson({ deeper: [value] }), '{"deeper": [{"a": [{"b": 7.0}], "10": {}, "2": 1}]}');
    for (const scalar of [1, null, "x"]) freezeJson(scalar);
  });

  it("computes once for a frozen value, each time for any other", () => {
    const [one, other] = [{}, {}];
    freezeJson(one);
    assert.deepEqual([count(one), count(other)], [1, 3]);
    assert.equal(
      recall(one, Symbol("what"), () => 7),
      7,
      "names are told apart",
    );
  });

  it("computes again for other dependencies, or an uncacheable result", () => {
    const value = {};
    freezeJson(value);
    const [a, b] = [{}, {}];
    assert.deepEqual([count(value, [a]), count(value, [a]), count(value, [b]), count(value, [a, b])], [1, 0, 1, 1]);
    assert.equal(
      count({}, [a], () => true),
      3,
    );
    const picky = {};
    freezeJson(picky);
    assert.equal(
      count(picky, [], (found) => found >= 2),
      2,
    );
  });
});
