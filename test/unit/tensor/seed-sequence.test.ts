import assert from "node:assert/strict";
import { seedSequence } from "#src/tensor/seed-sequence.js";

/** First words of numpy.random.SeedSequence(entropy, spawn_key, pool_size), for pools of 24 and 4. */
const NUMPY: [entropy: bigint, key: number[], ofPool24: number, ofPool4: number][] = [
  [0n, [], 4025752534, 2968811710],
  [42n, [], 387750627, 3444837047],
  [42n, [0, 0], 2102017995, 3142992634],
  [42n, [1, 1], 1058881542, 500939758],
  [2n ** 64n - 1n, [5, 7], 2156271798, 4246237251],
  [2n ** 32n, [3, 2 ** 8, 40], 4187839727, 3517136737],
  [9007199254740993n, [0, 1, 2], 2057541142, 3568856089],
];

describe("seedSequence", () => {
  it("has numpy's first word for keys of any length and any number of words", () => {
    for (const [entropy, key, ofPool24, ofPool4] of NUMPY) {
      assert.equal(seedSequence(entropy)(key), ofPool24);
      assert.equal(seedSequence(entropy, 4)(key), ofPool4);
    }
  });

  it("gives a key's word again, whatever keys came between", () => {
    const seeds = seedSequence(42n);
    assert.deepEqual(
      [seeds([]), seeds([1, 1]), seeds([0, 0]), seeds([])],
      [387750627, 1058881542, 2102017995, 387750627],
    );
  });
});
