import assert from "node:assert/strict";
import { linkSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ItemFiles, readTemporary } from "#src/io/files/item-files.js";
import { sweep } from "#src/render/batch/journal/recovery.js";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";

const BATCH = "0123456789ab";
const names = (position: number) => ({ batch: BATCH, position, number: position + 1, isKept: true });

describe("sweep of a killed batch", () => {
  const folder = temporaryFolder();
  const write = async (index: number, where = folder()) =>
    new ItemFiles(names(index)).writeNumbered(where, "p", ".png", Buffer.from(`item ${index}`));
  const finals = () => filesIn(folder()).filter((name) => readTemporary(name.split("/").at(-1)!) === undefined);

  it("removes files of a cut item, keeps those of a finished one", async () => {
    mkdirSync(join(folder(), "sub"));
    await write(0);
    await write(1, join(folder(), "sub"));
    await write(2);
    // written, and killed before it got its name
    const unpublished = `.latentkit-${BATCH}-3-aaaa.tmp`;
    writeFileSync(join(folder(), unpublished), "half");
    // another batch's, and no batch's
    const others = [".latentkit-ffffffffffff-1-aaaa.tmp", ".latentkit-aaaaaaaaaaaaaaaaaaaaaaaa.tmp", "p_00009.png"];
    for (const name of others) writeFileSync(join(folder(), name), "another's");
    linkSync(join(folder(), others[0]!), join(folder(), "q.png"));
    assert.equal(await sweep(folder(), BATCH, (index) => (index === 2 ? undefined : index === 0)), 1);
    assert.deepEqual(finals(), [others[1], "p_00001.png", "p_00003.png", "p_00009.png", "q.png"].sort());
    const left = filesIn(folder()).filter((name) => name.includes(BATCH));
    assert.equal(left.length, 1);
    assert.equal(readTemporary(left[0]!)?.position, 2);
  });

  it("removes temporary files of texts, never the texts", async () => {
    const files = new ItemFiles(names(0));
    await files.writeAppending(folder(), "log.txt", Buffer.from("one "));
    await files.writeAppending(folder(), "log.txt", Buffer.from("two"));
    await files.writeReplacing(folder(), "text.txt", Buffer.from("whole"));
    assert.deepEqual(filesIn(folder()), []);
    await files.commit();
    await files.commit();
    assert.deepEqual(filesIn(folder()), ["log.txt", "text.txt"]);
    // killed between link and unlink, and between writing and rename
    linkSync(join(folder(), "log.txt"), join(folder(), `.latentkit-${BATCH}-0-xaa.tmp`));
    writeFileSync(join(folder(), `.latentkit-${BATCH}-0-xbb.tmp`), "who");
    assert.equal(await sweep(folder(), BATCH, () => false), 0);
    assert.deepEqual(filesIn(folder()), ["log.txt", "text.txt"]);
    assert.equal(readFileSync(join(folder(), "log.txt"), "utf8"), "one two");
    assert.deepEqual(files.written, []);
  });

  it("does nothing where there is no folder", async () => {
    assert.equal(await sweep(join(folder(), "none"), BATCH, () => false), 0);
  });
});
