import assert from "node:assert/strict";
import { createGraphKeys } from "#src/render/items/graph-keys.js";
import { createSeedDraw, isRandomSeed, parseSeeds, randomSeed, seedAxis } from "#src/render/items/seeds.js";
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

  it("refuses texts that are not seeds", () => {
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

  it("sets every seed of the graph that is not a link, except those already set", () => {
    assert.deepEqual(keysOf([]), ["5.seed", "6.seed", "8.seed", "9.noise_seed"]);
    assert.deepEqual(keysOf(["5.seed", "scene"]), ["6.seed", "8.seed", "9.noise_seed"]);
    // a placeholder that stands for a seed sets it, too
    assert.deepEqual(keysOf(["seed", "9.noise_seed"]), ["5.seed", "8.seed"]);
  });

  it("sets a seed that several nodes get from a primitive once", () => {
    const keys = createGraphKeys({
      1: { class_type: "PrimitiveInt", inputs: { value: 7 } },
      2: { class_type: "RandomNoise", inputs: { noise_seed: ["1", 0] } },
      3: { class_type: "KSampler", inputs: { seed: ["1", 0] } },
      4: { class_type: "KSampler", inputs: { seed: 5 } },
    });
    assert.deepEqual(seedAxis("1", keys, []).keys, ["1.value", "4.seed"]);
    assert.deepEqual(seedAxis("1", keys, ["1.value"]).keys, ["4.seed"]);
  });

  it("refuses a graph that has nothing to set", () => {
    const taken = ["5.seed", "seed", "8.seed", "9.noise_seed"];
    assert.throws(() => seedAxis("1", seededKeys(), taken), {
      code: "usage.invalid",
      message: "--seeds: there is nothing to set; 5.seed and 6.seed and 8.seed and 9.noise_seed are already set.",
    });
    const plain = createGraphKeys({ 1: { class_type: "LoadImage", inputs: { image: "x.png" } } });
    assert.throws(() => seedAxis("1", plain, []), {
      message: /the graph has no seed or noise_seed with its own value/,
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

describe("random seeds", () => {
  const by = (position: number, batch = "0123456789ab") => ({ batch, position });

  it("are drawn for each item, and the same again for the same item of the same batch", () => {
    const { seedsOf, shared } = createSeedDraw(seededKeys(), { scene: "random", "8.seed": "random" });
    assert.deepEqual(shared, ["8.seed"]);
    const first = seedsOf({ "5.seed": "random", scene: "random" }, by(0));
    assert.deepEqual(Object.keys(first), ["5.seed", "scene", "8.seed"]);
    assert.equal(first.scene, "random");
    const seeds = new Set<unknown>();
    for (let position = 0; position < 500; position++) {
      const { "5.seed": own, "8.seed": other } = seedsOf({ "5.seed": "random" }, by(position));
      for (const seed of [own, other]) {
        assert.ok(Number.isInteger(seed) && Number(seed) >= 0 && Number(seed) < 1e15, String(seed));
        seeds.add(seed);
      }
    }
    assert.equal(seeds.size, 1000);
    assert.deepEqual(seedsOf({ "5.seed": "random", scene: "random" }, by(0)), first);
    assert.notDeepEqual(seedsOf({ "5.seed": "random", scene: "random" }, by(0, "ffffffffffff")), first);
    assert.equal(seedsOf({ "5.seed": "random", "8.seed": 7 }, by(0))["8.seed"], 7);
  });

  it("with a number are those that all items and inputs share", () => {
    const { seedsOf } = createSeedDraw(seededKeys(), {});
    const values = { "5.seed": "random:1", "9.noise_seed": "random:1", "6.seed": "random:2", "5.steps": "random" };
    const first = seedsOf(values, by(0));
    assert.equal(first["5.seed"], first["9.noise_seed"]);
    assert.notEqual(first["5.seed"], first["6.seed"]);
    assert.equal(first["5.steps"], "random");
    assert.deepEqual(seedsOf(values, by(77)), first);
  });

  it("leave items alone that draw none", () => {
    const { seedsOf, shared } = createSeedDraw(seededKeys(), { "5.seed": 7 });
    const values = { "5.seed": "random:0", scene: "random", "6.seed": 3 };
    assert.equal(seedsOf(values, by(0)), values);
    assert.deepEqual(shared, []);
    assert.equal(isRandomSeed(seededKeys(), "seed", "random"), true);
    assert.equal(isRandomSeed(seededKeys(), "none", "random"), false);
    assert.ok(new Set(Array.from({ length: 50 }, randomSeed)).size === 50);
  });
});
