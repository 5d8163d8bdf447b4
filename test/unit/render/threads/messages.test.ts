import assert from "node:assert/strict";
import { createMark, readMark, setMark } from "#src/render/threads/messages.js";

describe("render/mark", () => {
  it("holds one id, and none", () => {
    const mark = createMark();
    assert.equal(readMark(mark), undefined);
    setMark(mark, "12:3");
    assert.equal(readMark(mark), "12:3");
    setMark(mark, "ünïcode ✓");
    assert.equal(readMark(mark), "ünïcode ✓");
    setMark(mark, "");
    assert.equal(readMark(mark), undefined);
  });

  it("holds the whole characters that a long id begins with", () => {
    const mark = createMark();
    setMark(mark, "✓".repeat(200));
    assert.equal(readMark(mark), "✓".repeat(85));
  });
});
