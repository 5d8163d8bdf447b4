import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodePng } from "latentkit";
import { ItemFiles, readTemporary } from "#src/io/files/item-files.js";
import { createPresence, sweep } from "#src/render/batch/journal/written-files.js";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";
import { skip } from "../../../../helpers/skip.js";

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

  it("does nothing if there is no folder", async () => {
    assert.equal(await sweep(join(folder(), "none"), BATCH, () => false), 0);
  });
});

describe("presence of a batch's files", () => {
  const folder = temporaryFolder();
  const path = (name: string) => join(folder(), name);

  it("is whole, cut or gone; only pictures are read", async () => {
    const file = await encodePng({ data: new Uint8Array(3), width: 1, height: 1, channels: 3 });
    mkdirSync(path("sub"));
    mkdirSync(path("folder.png"));
    writeFileSync(path("sub/whole.png"), file);
    writeFileSync(path("cut.png"), file.subarray(0, 40));
    writeFileSync(path("empty.png"), "");
    writeFileSync(path("log.txt"), "");
    const stateOf = createPresence(folder());
    const names = ["sub/whole.png", "cut.png", "empty.png", "log.txt", "gone.png", "none/gone.png", "folder.png"];
    const states = await Promise.all(names.map(stateOf));
    assert.deepEqual(states, ["whole", "cut", "cut", "whole", "gone", "gone", "gone"]);
    assert.equal(await stateOf("temp/anything.png"), "whole");
  });

  it("waits for no pipe, and reads no folder behind a link", async function () {
    if (process.platform === "win32") skip(this, "there are no pipes among files");
    assert.equal(spawnSync("mkfifo", [path("pipe.png")]).status, 0);
    mkdirSync(path("elsewhere"));
    symlinkSync(path("elsewhere"), path("link.png"));
    const stateOf = createPresence(folder());
    assert.deepEqual([await stateOf("pipe.png"), await stateOf("link.png")], ["whole", "whole"]);
  });
});
