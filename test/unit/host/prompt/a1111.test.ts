import assert from "node:assert/strict";
import { parseA1111 } from "#src/host/prompt/a1111.js";

/** Segments with weights to nine digits. */
const parsed = (text: string): [string, number][][] =>
  parseA1111(text).map((part) => part.map(([piece, weight]) => [piece, Number(weight.toFixed(9))]));

describe("prompts in the A1111 style", () => {
  it("multiplies by 1.1, divides by 1.1 and multiplies by a number", () => {
    assert.deepEqual(parsed("a (b) [c] (d:1.5) ((e:2))"), [
      [
        ["a ", 1],
        ["b", 1.1],
        [" ", 1],
        ["c", Number((1 / 1.1).toFixed(9))],
        [" ", 1],
        ["d", 1.5],
        [" ", 1],
        ["e", 2.2],
      ],
    ]);
  });

  it("multiplies an inner number with what is around it", () => {
    assert.deepEqual(parsed("(a (b:0.5):2)"), [
      [
        ["a ", 2],
        ["b", 1],
      ],
    ]);
  });

  it("joins neighbours of equal weight", () => {
    assert.deepEqual(parsed("a (b:1) c"), [[["a b c", 1]]]);
  });

  it("reads escaped brackets and backslashes as text", () => {
    assert.deepEqual(parsed("\\(a\\) \\[b\\] \\\\ (c\\:)"), [
      [
        ["(a) [b] \\ ", 1],
        ["c:", 1.1],
      ],
    ]);
  });

  it("lets a bracket left open act to the end, and takes a stray closing one as text", () => {
    assert.deepEqual(parsed("a) (b"), [
      [
        ["a) ", 1],
        ["b", 1.1],
      ],
    ]);
    assert.deepEqual(parsed("x:1.5) y"), [[["x:1.5) y", 1]]]);
  });

  it("keeps round and square brackets apart where they cross", () => {
    assert.deepEqual(parsed("(a [b) c]"), [
      [
        ["a ", 1.1],
        ["b", 1],
        [" c", Number((1 / 1.1).toFixed(9))],
      ],
    ]);
  });

  it("begins a new part at the word BREAK and continues the weight", () => {
    assert.deepEqual(parsed("(a BREAK b:1.2)"), [[["a ", 1.2]], [[" b", 1.2]]]);
    assert.deepEqual(parsed("aBREAKb"), [[["aBREAKb", 1]]]);
    assert.deepEqual(parsed("BREAK"), [[]]);
  });

  it("parses a million hostile characters in bounded time @long", () => {
    const n = 1_000_000;
    for (const text of [
      "(".repeat(n),
      "[(".repeat(n / 2),
      "(a:1".repeat(n / 4),
      `(${":1".repeat(n / 2)}`,
      "]".repeat(n),
    ]) {
      assert.ok(Array.isArray(parseA1111(text)));
    }
    assert.ok(Array.isArray(parseA1111(`(x:${"1".repeat(n)}`)));
  });
});
