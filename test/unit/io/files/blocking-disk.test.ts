import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { blockingDisk } from "#src/io/files/blocking-disk.js";
import { writeAppending, writeLinked, writeNew, writeReplacing } from "#src/io/files/write-file.js";
import { refuses } from "../../../helpers/errors.js";
import { temporaryFolder, tree } from "../../../helpers/folders.js";

const bytes = Buffer.from("content");

describe("io/files/blocking-disk", () => {
  const folder = temporaryFolder();
  const read = (name: string) => readFileSync(join(folder(), name), "utf8");

  it("writes as Node's promises do", async () => {
    writeFileSync(join(folder(), "a_0"), "old");
    const nameAt = (attempt: number) => `a_${attempt}`;
    assert.equal(await writeNew(folder(), bytes, nameAt, blockingDisk), "a_1");
    assert.equal(await writeLinked(folder(), bytes, join(folder(), "second.tmp"), nameAt, blockingDisk), "a_2");
    await writeReplacing(folder(), "b", bytes, blockingDisk);
    await writeReplacing(folder(), "b", Buffer.from("new"), blockingDisk);
    await writeAppending(folder(), "c", bytes, blockingDisk);
    await writeAppending(folder(), "c", bytes, blockingDisk);
    assert.deepEqual(tree(folder()), ["a_0", "a_1", "a_2", "b", "c", "second.tmp"]);
    assert.deepEqual(["a_0", "a_1", "a_2", "b", "c"].map(read), ["old", "content", "content", "new", "contentcontent"]);
  });

  it("writes a large file whole", async () => {
    const large = Buffer.alloc(20_000_000, "x");
    await writeReplacing(folder(), "large", large, blockingDisk);
    assert.ok(readFileSync(join(folder(), "large")).equals(large));
  });

  it("gives the reason of a failure, and leaves no file", async () => {
    mkdirSync(join(folder(), "a"));
    await refuses(writeReplacing(folder(), "a", bytes, blockingDisk), "file.write-failed", /a folder has that name/);
    const nowhere = join(folder(), "nowhere");
    await refuses(
      writeNew(nowhere, bytes, () => "a", blockingDisk),
      "file.write-failed",
      /does not exist/,
    );
    assert.deepEqual(tree(folder()), ["a/"]);
  });
});
