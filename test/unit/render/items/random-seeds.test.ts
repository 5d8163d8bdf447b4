import assert from "node:assert/strict";
import { createSeedDraw, isRandomSeed, randomSeed } from "#src/render/items/random-seeds.js";
import { seededKeys } from "../../../helpers/items/items.js";

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
