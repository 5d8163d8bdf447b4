import assert from "node:assert/strict";
import { rangeEnds } from "#src/host/sampling/brownian-tree.js";

describe("rangeEnds", () => {
  it("gives each range an eighth less than the one before it, in whole blocks", () => {
    assert.deepEqual([...rangeEnds(16384, 2)], [8736, 16384]);
    assert.deepEqual([...rangeEnds(16384, 4)], [4944, 9264, 13056, 16384]);
  });

  it("has at most as many ranges as threads, as parts of 4096 elements, and sixteen", () => {
    const counts = [
      [0, 2, 1],
      [8191, 2, 1],
      [8192, 2, 2],
      [16384, 16, 4],
      [2 ** 20, 3, 3],
      [2 ** 20, 64, 16],
    ] as const;
    for (const [size, threads, expected] of counts)
      assert.equal(rangeEnds(size, threads).length, expected, `${size} elements, ${threads} threads`);
  });

  it("rises to any size, and leaves the last range a block at least", () => {
    for (let size = 8192; size < 2 ** 19; size += 4097) {
      for (const threads of [2, 3, 7, 16]) {
        const ends = [0, ...rangeEnds(size, threads)];
        assert.equal(ends.at(-1), size);
        const lengths = ends.slice(1).map((end, i) => end - ends[i]!);
        assert.ok(
          lengths.every((length) => length >= 16 && length <= lengths[0]!),
          `${size}, ${threads}: ${ends}`,
        );
        assert.ok(ends.slice(0, -1).every((end) => end % 16 === 0));
      }
    }
  });
});
