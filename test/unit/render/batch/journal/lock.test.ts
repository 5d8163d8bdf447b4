import assert from "node:assert/strict";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { lockFile } from "#src/render/batch/journal/lock.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { skip } from "../../../../helpers/skip.js";

describe("lockFile", () => {
  const folder = temporaryFolder();

  it("refuses a locked file until it is closed", async () => {
    const path = join(folder(), "journal");
    const [first, second] = [await open(path, "a+"), await open(path, "a+")];
    try {
      const unlock = await lockFile(first.fd, path);
      assert.equal(await lockFile(second.fd, path), undefined);
      await first.close();
      await unlock!();
      assert.equal(typeof (await lockFile(second.fd, path)), "function");
    } finally {
      await second.close();
    }
  });

  it("names the file and the system's error where there can be no lock", async function () {
    if (process.platform === "win32") skip(this, "Windows locks the name of a pipe");
    const message = /^Journal j\.jsonl cannot be locked \(EBADF\)\.$/;
    await refuses(() => lockFile(2 ** 30, "j.jsonl"), "file.write-failed", message);
  });
});
