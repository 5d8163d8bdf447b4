import assert from "node:assert/strict";
import { execFileSync, fork } from "node:child_process";
import { mkdirSync, promises, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LatentkitError } from "#src/base/errors.js";
import { deserializeError, serializeError } from "#src/base/sent-error.js";
import {
  blockingDisk,
  type Disk,
  isOutputLost,
  writeAppending,
  writeLinked,
  writeNew,
  writeReplacing,
} from "#src/io/files/write-file.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder, tree } from "../../../helpers/folders.js";
import { skip } from "../../../helpers/skip.js";
import { mountDisk, unmountDisk } from "../../../helpers/small-disk.js";

describe("io/files/write-file", () => {
  const bytes = Buffer.from("content");
  const program = fileURLToPath(new URL("../../../helpers/process/save-many.js", import.meta.url));

  /** A disk on which one call fails. */
  function failing(call: keyof Disk | "writeFile" | "sync", code: string): Disk {
    const fail = async () => {
      throw Object.assign(new Error(code), { code });
    };
    const open: Disk["open"] = async (...given) => {
      const file = await promises.open(...given);
      if (call === "writeFile" || call === "sync") {
        file[call] = async () => {
          // half of it reaches the disk
          await promises.appendFile(String(given[0]), "half");
          return fail();
        };
      }
      return file;
    };
    return {
      open,
      link: promises.link,
      rename: promises.rename,
      rm: promises.rm,
      ...(call in promises && call !== "writeFile" && { [call]: fail }),
    };
  }

  const folder = temporaryFolder();

  it("takes the first free name and never another's", async () => {
    const nameAt = (attempt: number) => `a_${attempt}`;
    assert.equal(await writeNew(folder(), bytes, nameAt), "a_0");
    writeFileSync(join(folder(), "a_1"), "old");
    mkdirSync(join(folder(), "a_2"));
    symlinkSync("nowhere", join(folder(), "a_3"));
    assert.equal(await writeNew(folder(), bytes, nameAt), "a_4");
    assert.equal(readFileSync(join(folder(), "a_1"), "utf8"), "old");
    assert.deepEqual(tree(folder()), ["a_0", "a_1", "a_2/", "a_3", "a_4"]);
  });

  it("replaces in one step, a link itself and not what it leads to", async () => {
    writeFileSync(join(folder(), "kept"), "kept");
    symlinkSync("kept", join(folder(), "a"));
    await writeReplacing(folder(), "a", bytes);
    await writeReplacing(folder(), "a", Buffer.from("new"));
    assert.equal(readFileSync(join(folder(), "a"), "utf8"), "new");
    assert.equal(readFileSync(join(folder(), "kept"), "utf8"), "kept");
  });

  it("appends, or creates the file", async () => {
    await writeAppending(folder(), "a", bytes);
    await writeAppending(folder(), "a", bytes);
    assert.equal(readFileSync(join(folder(), "a"), "utf8"), "contentcontent");
    assert.deepEqual(tree(folder()), ["a"]);
  });

  for (const code of ["ENOSPC", "EACCES", "EROFS", "EDQUOT", "EIO"]) {
    it(`leaves no file when the disk fails with ${code}`, async () => {
      writeFileSync(join(folder(), "old"), "old");
      for (const call of ["open", "writeFile", "sync", "link", "rename"] as const) {
        const disk = failing(call, code);
        if (call !== "rename")
          await refuses(
            writeNew(folder(), bytes, () => "a", disk),
            "file.write-failed",
            new RegExp(code),
          );
        if (call !== "link") {
          await refuses(writeReplacing(folder(), "old", bytes, disk), "file.write-failed", new RegExp(code));
        }
        if (call !== "rename" && call !== "link") {
          await refuses(writeAppending(folder(), "old", bytes, disk), "file.write-failed", new RegExp(code));
        }
        assert.deepEqual(tree(folder()), ["old"], call);
        assert.equal(readFileSync(join(folder(), "old"), "utf8"), "old", call);
      }
    });
  }

  it("tells what the next file meets as well from what this one alone does, also after its way between threads", async () => {
    const lasting = ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM"];
    for (const code of [...lasting, "EIO", "ENAMETOOLONG", "ENOENT"]) {
      const disk = failing("open", code);
      const error: unknown = await writeReplacing(folder(), "a", bytes, disk).catch((cause: unknown) => cause);
      assert.equal((error as LatentkitError).details.systemCode, code);
      assert.equal(isOutputLost(deserializeError(serializeError(error))), lasting.includes(code), code);
    }
    assert.equal(isOutputLost(new LatentkitError("file.write-failed", "Cannot encode.")), false);
    assert.equal(isOutputLost(Object.assign(new Error("x"), { code: "ENOSPC" })), false);
  });

  it("works if there are no hard links", async () => {
    for (const code of ["EPERM", "ENOTSUP"]) {
      const disk = failing("link", code);
      const name = `a-${code}`;
      assert.equal(await writeNew(folder(), bytes, (attempt) => `${name}${attempt}`, disk), `${name}0`);
      assert.equal(await writeNew(folder(), bytes, (attempt) => `${name}${attempt}`, disk), `${name}1`);
      assert.equal(readFileSync(join(folder(), `${name}1`), "utf8"), "content");
    }
    assert.equal(filesIn(folder()).length, 4);
  });

  it("names a missing folder and a name that is too long", async () => {
    await refuses(
      writeNew(join(folder(), "missing"), bytes, () => "a"),
      "file.write-failed",
      /does not exist/,
    );
    await refuses(
      writeNew(folder(), bytes, () => "a".repeat(300)),
      "file.write-failed",
      /too long/,
    );
    assert.deepEqual(tree(folder()), []);
  });

  it("lets two processes save 200 images each into one folder @long", async () => {
    const runs = [1, 2].map(
      () =>
        new Promise<void>((resolve, reject) => {
          const child = fork(program, [folder(), "200"], { stdio: "inherit" });
          child.on("error", reject);
          child.on("exit", (status) => (status === 0 ? resolve() : reject(new Error(`exit ${status}`))));
        }),
    );
    await Promise.all(runs);
    const expected = Array.from({ length: 400 }, (_, i) => `shared_${String(i + 1).padStart(5, "0")}.png`);
    assert.deepEqual(tree(folder()), expected);
  });

  it("leaves nothing under a final name when it is killed @long", async () => {
    for (let round = 0; round < 5; round++) {
      const child = fork(program, [folder(), "10000"], { stdio: "inherit" });
      await new Promise((resolve) => child.once("message", resolve));
      await new Promise((resolve) => setTimeout(resolve, 20 + round * 7));
      child.kill("SIGKILL");
      await new Promise((resolve) => child.once("exit", resolve));
    }
    const { decodePng } = await import("latentkit");
    for (const file of filesIn(folder())) {
      if (!file.endsWith(".tmp")) await decodePng(readFileSync(join(folder(), file)));
    }
  });

  describe("on real file systems", () => {
    const save = (target: string) => {
      try {
        execFileSync(process.execPath, [program, target, "50"], { encoding: "utf8", stdio: "pipe" });
        return "";
      } catch (error) {
        return String((error as { stderr: string }).stderr);
      }
    };

    it("leaves no partial file on a full disk", function () {
      const target = join(folder(), "small");
      mkdirSync(target);
      if (!mountDisk(target, "size=64k")) {
        skip(this, "this user may not mount a small disk");
      }
      try {
        assert.match(save(target), /file\.write-failed.*ENOSPC/s);
        const left = tree(target);
        assert.ok(left.length > 0 && left.length < 50 && left.every((name) => name.endsWith(".png")), left.join());
        for (const name of left) assert.ok(readFileSync(join(target, name)).includes("IEND"));
      } finally {
        unmountDisk(target);
      }
    });

    it("leaves no partial file in a folder that may not be written", async function () {
      const target = join(folder(), "locked");
      mkdirSync(target, { mode: 0o555 });
      if (process.getuid?.() !== 0) {
        assert.match(save(target), /file\.write-failed.*EACCES/s);
      } else if (mountDisk(target, "ro")) {
        // root writes anywhere but on a read-only file system
        try {
          assert.match(save(target), /file\.write-failed.*EROFS/s);
        } finally {
          unmountDisk(target);
        }
      } else {
        skip(this, "root may write anywhere, and may not mount a read-only folder");
      }
      assert.deepEqual(tree(target), []);
    });
  });
});

describe("io/files/blocking-disk", () => {
  const bytes = Buffer.from("content");

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
