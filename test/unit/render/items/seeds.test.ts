import assert from "node:assert/strict";
import { createGraphKeys } from "#src/render/items/graph-keys.js";
import { parseSeeds, seedAxis } from "#src/render/items/seeds.js";
import { seededKeys } from "../../../helpers/items/items.js";

const all = (text: string) => [...seedAxis(text, seededKeys(), []).values()];
const keysOf = (taken: string[]) => seedAxis("1", seededKeys(), taken).keys;

describe("--seeds", () => {
  it("reads numbers, ranges and lists of both, in the order given", () => {
    assert.deepEqual(all("5"), [5]);
    assert.deepEqual(all("0..3"), [0, 1, 2, 3]);
    assert.deepEqual(all("9, 1,2,10 .. 12,7..7"), [9, 1, 2, 10, 11, 12, 7]);
    assert.equal(seedAxis("1,2,10..20", seededKeys(), []).count, 13n);
  });

  it("reads random seeds, which the batch draws by their numbers", () => {
    assert.deepEqual(all("random:2"), ["random:1", "random:2"]);
    assert.deepEqual(all("7, random: 1 ,random:2,9..10"), [7, "random:1", "random:2", "random:3", 9, 10]);
    const many = seedAxis("random:999999999999999", seededKeys(), []);
    assert.equal(many.count, 999_999_999_999_999n);
    assert.deepEqual([...many.samples()], ["random:1", "random:999999999999999"]);
    assert.deepEqual([...seedAxis("5,1..9", seededKeys(), []).samples()], [5, 1, 9]);
  });

  it("reaches to 18446744073709551615 without losing a digit", () => {
    assert.deepEqual(all("9007199254740990..9007199254740993"), [
      9007199254740990,
      9007199254740991,
      9007199254740992n,
      9007199254740993n,
    ]);
    assert.deepEqual(all("18446744073709551614..18446744073709551615"), [18446744073709551614n, 18446744073709551615n]);
    const whole = seedAxis("0..18446744073709551615", seededKeys(), []);
    assert.equal(whole.count, 2n ** 64n);
    assert.equal(whole.values()[Symbol.iterator]().next().value, 0);
  });

  it("refuses texts that are no seeds", () => {
    for (const text of ["", "x", "1,", "-1", "1.5", "..", "1..", "1...3", "0x10", "1e3", "123456789012345678901"]) {
      assert.throws(
        () => parseSeeds(text),
        {
          code: "usage.invalid",
          message: /^--seeds: expected seeds such as 0\.\.15, 7, 1,2,10\.\.20 or random:50, received "/,
        },
        text,
      );
    }
    assert.throws(() => parseSeeds("1,9..3"), { message: '--seeds: expected a range that goes up, received "9..3".' });
    assert.throws(() => parseSeeds("18446744073709551616"), { message: /expected seeds up to 18446744073709551615/ });
  });

  it("sets every seed of the graph that is no link, but those that are set already", () => {
    assert.deepEqual(keysOf([]), ["5.seed", "6.seed", "8.seed", "9.noise_seed"]);
    assert.deepEqual(keysOf(["5.seed", "scene"]), ["6.seed", "8.seed", "9.noise_seed"]);
    // a placeholder that stands for a seed sets it, too
    assert.deepEqual(keysOf(["seed", "9.noise_seed"]), ["5.seed", "8.seed"]);
  });

  it("refuses a graph that has nothing to set", () => {
    const taken = ["5.seed", "seed", "8.seed", "9.noise_seed"];
    assert.throws(() => seedAxis("1", seededKeys(), taken), {
      code: "usage.invalid",
      message: "--seeds: there is nothing to set; 5.seed and 6.seed and 8.seed and 9.noise_seed are set already.",
    });
    const plain = createGraphKeys({ 1: { class_type: "LoadImage", inputs: { image: "x.png" } } });
    assert.throws(() => seedAxis("1", plain, []), {
      message: /the graph has no input named seed or noise_seed that is no link/,
    });
  });

  it("follows aliases of classes", () => {
    const keys = createGraphKeys(
      { 1: { class_type: "easy latentNoisy", inputs: {} } },
      { classAliases: { "easy ": "ext " } },
    );
    assert.deepEqual(seedAxis("1", keys, []).keys, ["1.seed"]);
  });
});
