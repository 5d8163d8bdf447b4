import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodePng } from "latentkit";
import { createPresence } from "#src/render/batch/journal/presence.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { skip } from "../../../../helpers/skip.js";

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
