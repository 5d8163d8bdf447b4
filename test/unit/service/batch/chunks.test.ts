import assert from "node:assert/strict";
import { type Pending, takeChunk } from "#src/service/batch/chunks.js";

const items = (count: number, alone: readonly number[] = []) =>
  Array.from({ length: count }, (_, n) => ({ isAlone: alone.includes(n) }) as Pending);
const sizes = (pending: readonly Pending[], itemMs: number | undefined, share: number) => {
  const { chunk, rest } = takeChunk(pending, itemMs, share);
  assert.deepEqual([...chunk, ...rest], pending);
  return chunk.length;
};

describe("items of one run", () => {
  it("are as many as half a second needs, within a share and a bound", () => {
    assert.equal(sizes(items(500), undefined, 100), 1);
    assert.equal(sizes(items(500), 100, 100), 5);
    assert.equal(sizes(items(500), 5, 60), 60);
    assert.equal(sizes(items(500), 0.01, 500), 128);
    assert.equal(sizes(items(500), 60_000, 500), 1);
    assert.equal(sizes(items(2), 5, 500), 2);
  });

  it("never include one that is tried alone", () => {
    assert.equal(sizes(items(9, [0]), 5, 9), 1);
    assert.equal(sizes(items(9, [4]), 5, 9), 4);
  });
});
