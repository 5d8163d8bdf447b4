import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LatentkitError } from "latentkit";
import { InputFiles } from "#src/io/files/input-files.js";
import { refuses } from "../../../helpers/errors.js";
import { sha256, temporaryFolder } from "../../../helpers/folders.js";

const ADDRESS = "https://a.example/b.png";

describe("InputFiles", () => {
  const folder = temporaryFolder();
  const text = async (bytes: Promise<Buffer>) => (await bytes).toString();

  it("reads files at hand before those of the folder, and data: texts", async () => {
    writeFileSync(join(folder(), "a.txt"), "folder");
    writeFileSync(join(folder(), "b.txt"), "folder");
    const inputs = new InputFiles({
      folder: folder(),
      files: { "a.txt": Buffer.from("hand"), "../c": Buffer.from("c") },
    });
    assert.equal(await text(inputs.read("a.txt")), "hand");
    assert.equal(await text(inputs.read("b.txt")), "folder");
    assert.equal(await text(inputs.read("../c")), "c");
    assert.equal(await text(inputs.read("data:;base64,YWI=")), "ab");
    assert.equal(await inputs.hash("a.txt"), sha256(Buffer.from("hand")));
    assert.equal(await inputs.hash("b.txt"), sha256(Buffer.from("folder")));
    assert.equal(await inputs.hash("data:;base64,YWI="), sha256(Buffer.from("ab")));
    await refuses(inputs.read("../d"), "path.outside");
    await refuses(inputs.read("c.txt", 'input "image"'), "file.not-found", /^input "image"/);
    await refuses(new InputFiles({ folder: undefined }).read("a.txt"), "usage.invalid", /inputDir/);
  });

  it("hashes what was read, if it hashes reads, else what is there", async () => {
    const path = join(folder(), "a.txt");
    for (const hashesReads of [true, false]) {
      writeFileSync(path, "read");
      const inputs = new InputFiles({ folder: folder(), hashesReads });
      await inputs.read("a.txt");
      writeFileSync(path, "replaced");
      assert.equal(await inputs.hash("a.txt"), sha256(Buffer.from(hashesReads ? "read" : "replaced")));
      await inputs.read("a.txt");
      assert.equal(await inputs.hash("a.txt"), sha256(Buffer.from("replaced")));
    }
  });

  it("reads the same and fails the same where it may block", async () => {
    const large = Buffer.alloc(3_000_001, "large ");
    writeFileSync(join(folder(), "large"), large);
    writeFileSync(join(folder(), "empty"), "");
    mkdirSync(join(folder(), "sub"));
    symlinkSync("/etc/passwd", join(folder(), "link"));
    const [free, blocking] = [false, true].map((isBlocking) => new InputFiles({ folder: folder(), isBlocking }));
    assert.deepEqual(await blocking!.read("large"), large);
    assert.equal((await blocking!.read("empty")).length, 0);
    for (const name of ["none", "sub", "link", "../a", "large/a", "\0"]) {
      const [expected, error] = await Promise.all([free, blocking].map((inputs) => inputs!.read(name).catch((e) => e)));
      assert.ok(error instanceof LatentkitError, name);
      assert.deepEqual([error.code, error.message], [expected.code, expected.message]);
    }
  });

  it("downloads an address once, and hashes what was downloaded", async () => {
    let count = 0;
    const download = async (address: string) => Buffer.from(`${address} ${count++}`);
    const inputs = new InputFiles({ folder: folder(), download });
    assert.equal(await inputs.hash(ADDRESS), undefined);
    const [first, second] = await Promise.all([inputs.read(ADDRESS), inputs.read(ADDRESS)]);
    assert.equal(first, second);
    assert.equal(await inputs.hash(ADDRESS), sha256(first));
    assert.equal(await text(inputs.read("https://other.example/")), "https://other.example/ 1");
    const given = new InputFiles({
      folder: folder(),
      download,
      isOffline: true,
      files: { [ADDRESS]: Buffer.from("x") },
    });
    assert.equal(await text(given.read(ADDRESS)), "x");
    assert.equal(await given.hash(ADDRESS), sha256(Buffer.from("x")));
  });

  it("downloads nothing offline, nothing private, and not without end", async () => {
    await refuses(new InputFiles({ folder: folder(), isOffline: true }).read(ADDRESS), "network.forbidden");
    await refuses(new InputFiles({ folder: folder() }).read("https://127.0.0.1/a.png"), "download.refused");
    const large = { length: 2 ** 28 } as Buffer;
    const inputs = new InputFiles({ folder: folder(), download: async () => large });
    await inputs.read("https://a.example/1");
    await inputs.read("https://a.example/2");
    await refuses(
      inputs.read("https://a.example/3"),
      "download.refused",
      /at most 536870912 bytes of downloads in one run/,
    );
    assert.equal(await inputs.hash("https://a.example/3"), undefined);
  });
});
