import assert from "node:assert/strict";
import { JournalState, Positions } from "#src/render/batch/journal/state.js";

/** Keys are single letters here. */
const key = (letter: string) => letter.charCodeAt(0).toString(16).padStart(16, "0");

/** A journal with these items: capitals are done, small letters were cut, "." stands for none. */
function journalOf(items: string): JournalState {
  const state = new JournalState();
  for (const [item, letter] of [...items].entries()) {
    if (letter === ".") continue;
    if (letter === letter.toUpperCase()) state.end(item, key(letter), 0);
    else state.begin(item, key(letter.toUpperCase()));
  }
  return state;
}

const positionsOf = (journal: string, items: string) => {
  const positions = new Positions(journalOf(journal));
  return [...items].map((letter, index) => positions.of(index, key(letter)));
};

describe("positions of items in a journal", () => {
  it("are the indices of the items if nothing has changed", () => {
    assert.deepEqual(positionsOf("", "ABA"), [0, 1, 2]);
    assert.deepEqual(positionsOf("ABcA", "ABCAEF"), [0, 1, 2, 3, 4, 5]);
    const none = new Positions(undefined);
    assert.deepEqual([none.of(0, key("A")), none.of(1, key("A"))], [0, 1]);
  });

  it("stay with an item that has moved; a new one goes behind all", () => {
    assert.deepEqual(positionsOf("ABC", "XABC"), [3, 0, 1, 2]);
    assert.deepEqual(positionsOf("ABC", "XYABCZ"), [3, 4, 0, 1, 2, 5]);
    assert.deepEqual(positionsOf("ABC", "CAB"), [2, 0, 1]);
    assert.deepEqual(positionsOf("ABC", "BC"), [1, 2]);
    assert.deepEqual(positionsOf("ABC...", "AXBCDEF"), [0, 3, 1, 2, 4, 5, 6]);
  });

  it("of an unfinished item go to the item of that index", () => {
    assert.deepEqual(positionsOf("AbC", "AXC"), [0, 1, 2]);
    assert.deepEqual(positionsOf("A.C", "AXC"), [0, 1, 2]);
    // what was finished with other values keeps its place
    assert.deepEqual(positionsOf("ABC", "AXC"), [0, 3, 2]);
  });

  it("of equal items are assigned in order", () => {
    assert.deepEqual(positionsOf("AABA", "AAAAB"), [0, 1, 3, 4, 2]);
    assert.deepEqual(positionsOf("AAA", "XAAAA"), [3, 1, 2, 0, 4]);
    const state = new JournalState();
    const many = 20_000;
    for (let item = 0; item < many; item++) state.end(item, key("A"), 0);
    const positions = new Positions(state);
    const given = new Set([positions.of(many, key("B"))]);
    for (let index = 1; index <= many; index++) given.add(positions.of(index, key("A")));
    assert.equal(given.size, many + 1);
  });
});
