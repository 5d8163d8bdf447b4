import assert from "node:assert/strict";
import { rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileCache, Recent } from "#src/host/checkpoint/files/recent.js";
import { temporaryFolder } from "../../../../helpers/folders.js";

describe("Recent", () => {
  it("forgets the entry that was used longest ago, and none while there is room", () => {
    const recent = new Recent<number>(2);
    const made: string[] = [];
    const take = (key: string): number =>
      recent.getOr(key, () => {
        made.push(key);
        return made.length;
      });
    for (const key of ["a", "b", "a", "b", "a", "c", "a", "b"]) take(key);
    assert.deepEqual(made, ["a", "b", "c", "b"]);
    recent.set("a", 9);
    assert.deepEqual([recent.get("a"), recent.get("b"), recent.get("c")], [9, 4, undefined]);
    recent.delete("a");
    assert.equal(recent.get("a"), undefined);
  });
});

describe("FileCache", () => {
  const folder = temporaryFolder();
  const file = (name = "a") => join(folder(), name);
  let made: number;
  let cache: FileCache;
  beforeEach(() => {
    made = 0;
    cache = new FileCache();
    writeFileSync(file(), "one");
  });
  const get = (path = file(), variant = "") => cache.get(path, variant, async () => ++made);

  it("makes one object for each file and variant, also for calls beside each other", async () => {
    assert.deepEqual(await Promise.all([get(), get()]), [1, 1]);
    assert.equal(await get(file(), "other"), 2);
    assert.equal(await get(), 1);
  });

  it("makes another if size or time of the file change, or it comes back", async () => {
    await get();
    writeFileSync(file(), "three");
    assert.equal(await get(), 2);
    utimesSync(file(), 1, 1);
    assert.equal(await get(), 3);
    rmSync(file());
    assert.equal(await get(), 4);
  });

  it("tries again if an object could not be made", async () => {
    const work = cache.get(file(), "", () => Promise.reject(new Error("not now")));
    await assert.rejects(work, /not now/);
    assert.equal(await get(), 1);
  });

  it("keeps a bounded number, and of those the last used", async () => {
    await get();
    for (let i = 0; i < 255; i++) await get(file(), `variant ${i}`);
    assert.equal(await get(), 1);
    await get(file(), "one more");
    assert.equal(await get(), 1);
    const before = made;
    await get(file(), "variant 0");
    assert.equal(made, before + 1);
  });
});
