import assert from "node:assert/strict";
import { scheduleTexts } from "#src/host/prompt/schedule.js";

const at = (text: string, steps: number): [string, number, number][] =>
  scheduleTexts(text, steps).map((entry) => [entry.text, entry.startPercent, entry.endPercent]);

describe("prompt schedules", () => {
  it("leaves a text without schedules alone", () => {
    assert.deepEqual(at("a [b] (c:1.2) [d:e] [f:g:h]", 20), [["a [b] (c:1.2) [d:e] [f:g:h]", 0, 1]]);
  });

  it("switches at a share of the steps or at a step", () => {
    assert.deepEqual(at("a [b:c:0.25] d", 20), [
      ["a b d", 0, 0.25],
      ["a c d", 0.25, 1],
    ]);
    assert.deepEqual(at("[b:c:5]", 20), [
      ["b", 0, 0.25],
      ["c", 0.25, 1],
    ]);
  });

  it("adds and removes", () => {
    assert.deepEqual(at("x[a:10]", 20), [
      ["x", 0, 0.5],
      ["xa", 0.5, 1],
    ]);
    assert.deepEqual(at("x[a::10]", 20), [
      ["xa", 0, 0.5],
      ["x", 0.5, 1],
    ]);
  });

  it("never switches past the end, and has switched if the share is under a step", () => {
    assert.deepEqual(at("[a:b:30]", 20), [["a", 0, 1]]);
    assert.deepEqual(at("[a:b:0.5]", 1), [["b", 0, 1]]);
    assert.deepEqual(at("[a:b:1.0]", 4), [["a", 0, 1]]);
  });

  it("alternates step by step", () => {
    assert.deepEqual(at("[a|b]", 4), [
      ["a", 0, 0.25],
      ["b", 0.25, 0.5],
      ["a", 0.5, 0.75],
      ["b", 0.75, 1],
    ]);
    assert.deepEqual(at("[a|]", 2), [
      ["a", 0, 0.5],
      ["", 0.5, 1],
    ]);
    assert.deepEqual(at("[a|a]", 2), [["a", 0, 1]]);
  });

  it("nests", () => {
    assert.deepEqual(at("[[a:b:2]:[c|d]:4]", 6), [
      ["a", 0, 2 / 6],
      ["b", 2 / 6, 4 / 6],
      ["c", 4 / 6, 5 / 6],
      ["d", 5 / 6, 1],
    ]);
    assert.deepEqual(at("[(a:1.2):(b:0.5):2]", 4), [
      ["(a:1.2)", 0, 0.5],
      ["(b:0.5)", 0.5, 1],
    ]);
    assert.deepEqual(at("[x [a:b:2] y]", 4), [
      ["[x a y]", 0, 0.5],
      ["[x b y]", 0.5, 1],
    ]);
  });

  it("takes escaped and unpaired brackets as text", () => {
    for (const text of ["\\[a:b:2\\]", "[a:b:2", "a:b:2]", "[a\\|b]"]) assert.deepEqual(at(text, 4), [[text, 0, 1]]);
  });

  it("refuses a long text that changes with every step, and walks deep ones once", () => {
    assert.throws(() => scheduleTexts(`[a|b]${"x".repeat(100_000)}`, 10_000), /at most 33554432 characters/);
    const depth = 200_000;
    assert.deepEqual(at(`${"[".repeat(depth)}a${":1]".repeat(depth)}`, 2), [
      ["", 0, 0.5],
      ["a", 0.5, 1],
    ]);
    assert.equal(at("[".repeat(1_000_000), 2).length, 1);
  });
});
