import assert from "node:assert/strict";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { claimFile } from "#src/render/batch/claim.js";
import { refuses } from "../../../helpers/errors.js";
import { freshFolder } from "../../../helpers/folders.js";
import { skip } from "../../../helpers/skip.js";

describe("claimFile", () => {
  const folder = freshFolder();

  it("refuses a file that is claimed, until it is closed", async () => {
    const path = join(folder(), "journal");
    const [first, second] = [await open(path, "a+"), await open(path, "a+")];
    try {
      const release = await claimFile(first.fd, path);
      assert.equal(await claimFile(second.fd, path), undefined);
      await first.close();
      await release!();
      assert.equal(typeof (await claimFile(second.fd, path)), "function");
    } finally {
      await second.close();
    }
  });

  it("names the file and the system's error where there can be no lock", async function () {
    if (process.platform === "win32") skip(this, "Windows claims the name of a pipe");
    const message = /^Journal j\.jsonl cannot be locked \(EBADF\)\.$/;
    await refuses(() => claimFile(2 ** 30, "j.jsonl"), "file.write-failed", message);
  });
});
