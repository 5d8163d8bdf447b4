import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { autoV2, FileHashes, StoredHashes } from "#src/host/checkpoint/files/file-hashes.js";
import { refuses, rejectsAs } from "../../../../helpers/errors.js";
import { sha256, temporaryFolder } from "../../../../helpers/folders.js";

describe("FileHashes", () => {
  const folder = temporaryFolder();
  const write = (name: string, bytes: Uint8Array): string => {
    const path = join(folder(), name);
    writeFileSync(path, bytes);
    return path;
  };

  it("are those of the bytes, and AutoV2 their first ten digits", async () => {
    const bytes = Buffer.alloc(1_000_003, 7);
    const hash = await new FileHashes().sha256(write("a", bytes));
    assert.equal(hash, sha256(bytes));
    assert.equal(autoV2(hash), sha256(bytes).slice(0, 10));
    assert.equal(await new FileHashes().sha256(write("empty", Buffer.alloc(0))), sha256(Buffer.alloc(0)));
  });

  it("are computed again if a file has changed, and once for all who ask", async () => {
    const hashes = new FileHashes();
    const path = write("a", Buffer.from("one"));
    const [first, second] = await Promise.all([hashes.sha256(path), hashes.sha256(path)]);
    assert.equal(first, sha256(Buffer.from("one")));
    assert.equal(second, first);
    write("a", Buffer.from("two"));
    utimesSync(path, 1, 1);
    assert.equal(await hashes.sha256(path), sha256(Buffer.from("two")));
  });

  it("are stored for later processes, which distrust damaged entries", async () => {
    const cache = join(folder(), "cache/hashes");
    const path = write("a", Buffer.from("one"));
    const hash = await new FileHashes(new StoredHashes(cache)).sha256(path);
    const [entry] = readdirSync(cache);
    assert.deepEqual(readdirSync(cache).length, 1);
    assert.equal(readFileSync(join(cache, entry!), "utf8"), hash);
    writeFileSync(join(cache, entry!), "0".repeat(64));
    assert.equal(await new FileHashes(new StoredHashes(cache)).sha256(path), "0".repeat(64));
    writeFileSync(join(cache, entry!), "<html>");
    assert.equal(await new FileHashes(new StoredHashes(cache)).sha256(path), hash);
    // a file in the way of the folder costs nothing but time
    const blocked = new StoredHashes(join(write("file", Buffer.alloc(1)), "hashes"));
    assert.equal(await new FileHashes(blocked).sha256(path), hash);
  });

  it("stop if the signal aborts, unless others wait", async () => {
    const hashes = new FileHashes();
    const bytes = Buffer.alloc(64 << 20, 1);
    const path = write("large", bytes);
    const impatient = new AbortController();
    const waiting = hashes.sha256(path);
    const refused = rejectsAs(impatient.signal, hashes.sha256(path, impatient.signal));
    setImmediate(() => impatient.abort());
    await refused;
    assert.equal(await waiting, sha256(bytes));

    appendFileSync(path, "x");
    const alone = new AbortController();
    const start = process.cpuUsage();
    const stopped = rejectsAs(alone.signal, hashes.sha256(path, alone.signal));
    setTimeout(() => alone.abort(), 5);
    await stopped;
    // who comes right after is not stopped with it
    assert.equal((await hashes.sha256(path)).length, 64);
    assert.ok(process.cpuUsage(start).user > 0);
    const aborted = AbortSignal.abort();
    await rejectsAs(aborted, hashes.sha256(write("other", Buffer.from("y")), aborted));
  });

  it("leave the event loop free @alone", async () => {
    const path = write("large", Buffer.alloc(64 << 20, 1));
    let longest = 0;
    let last = performance.now();
    const timer = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 1);
    await new FileHashes().sha256(path);
    clearInterval(timer);
    assert.ok(longest < 100, `${longest} ms`);
  });

  it("refuse anything but a file", async () => {
    const hashes = new FileHashes();
    await refuses(hashes.sha256(join(folder(), "none")), "file.not-found", /none/);
    mkdirSync(join(folder(), "sub"));
    await refuses(hashes.sha256(join(folder(), "sub")), "file.read-failed", /not a regular file/);
    await refuses(hashes.sha256("/dev/zero"), "file.read-failed", /not a regular file/);
  });
});
