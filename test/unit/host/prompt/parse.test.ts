import assert from "node:assert/strict";
import { LatentkitError, parsePrompt } from "latentkit";
import { parseA1111 } from "#src/host/prompt/parse.js";
import { growsLinearly } from "../../../helpers/growth.js";

describe("parsePrompt", () => {
  it("reads weights as Python reads numbers", () => {
    const weights: [string, number][] = [
      ["(x: 2 )", 2],
      ["(x:1_0)", 10],
      ["(x:٣.५)", 3.5],
      ["(x:+1.3)", 1.3],
      ["(x:.5)", 0.5],
      ["(x:5.)", 5],
      ["(x:1e-1)", 0.1],
      ["(x:-Infinity)", Number.NEGATIVE_INFINITY],
      ["(x:nan)", Number.NaN],
    ];
    for (const [text, weight] of weights) assert.deepEqual(parsePrompt(text), [["x", weight]]);
  });

  it("keeps the text of an invalid number", () => {
    for (const tail of ["1__0", "_1", "1_", "0x10", "1.2.3", "", "- 1", "1e", "one"]) {
      assert.deepEqual(parsePrompt(`(x:${tail})`), [[`x:${tail}`, 1.1]]);
    }
  });

  it("sets an inner weight regardless of outer ones", () => {
    assert.deepEqual(parsePrompt("(a (b:0.3) c:1.4) d"), [
      ["a ", 1.4],
      ["b", 0.3],
      [" c", 1.4],
      [" d", 1],
    ]);
    assert.deepEqual(parsePrompt("(a:1.2 (b))"), [
      ["a:1.2 ", 1.1],
      ["b", 1.1 * 1.1],
    ]);
  });

  it("takes parentheses without a partner as text", () => {
    assert.deepEqual(parsePrompt("a (b"), [
      ["a ", 1],
      ["(b", 1],
    ]);
    assert.deepEqual(parsePrompt("a) (b:2) c"), [["a) (b:2) c", 1]]);
    assert.deepEqual(parsePrompt("((a)"), [["(a", 1.1]]);
    assert.deepEqual(parsePrompt("(a (b:1.2)"), [
      ["a ", 1.2],
      ["(b", 1.2],
    ]);
    assert.deepEqual(parsePrompt("()"), []);
  });

  it("reads escaped parentheses as text, also beside real ones", () => {
    assert.deepEqual(parsePrompt("\\((a\\):2)\\"), [
      ["(", 1],
      ["a)", 2],
      ["\\", 1],
    ]);
    assert.deepEqual(parsePrompt("(a\\)"), [["(a)", 1]]);
  });

  it("parses a million hostile characters, in linear time @long", async () => {
    const hostile: ((n: number) => string)[] = [
      (n) => "(".repeat(n),
      (n) => ")".repeat(n),
      (n) => "()".repeat(n / 2),
      (n) => "(:".repeat(n / 2),
      (n) => "(".repeat(n / 2) + ")".repeat(n / 2),
      (n) => `${"(".repeat(n / 2)}x${":1)".repeat(n / 4)}`,
      (n) => `(x:${"1".repeat(n)})`,
      (n) => `(x:${"1_".repeat(n / 2)})`,
      (n) => `(x:${" ".repeat(n)}y)`,
      (n) => "\\(".repeat(n / 2),
    ];
    for (const textOf of hostile) {
      await growsLinearly(5000, textOf, parsePrompt);
      assert.ok(Array.isArray(parsePrompt(textOf(1_000_000))));
    }
  });

  it("refuses anything but a text", () => {
    for (const value of [undefined, null, 5, ["a"]]) {
      assert.throws(
        () => parsePrompt(value as unknown as string),
        (error) => error instanceof LatentkitError && error.code === "value.invalid",
      );
    }
  });
});

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

  it("keeps round and square brackets apart if they cross", () => {
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
