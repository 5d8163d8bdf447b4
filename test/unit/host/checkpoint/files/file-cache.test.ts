import assert from "node:assert/strict";
import { rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileCache } from "#src/host/checkpoint/files/file-cache.js";
import { temporaryFolder } from "../../../../helpers/folders.js";

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
