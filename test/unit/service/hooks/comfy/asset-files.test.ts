import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { blake3 } from "@noble/hashes/blake3";
import { createPreviewHost, encodePng } from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { AssetFiles } from "#src/service/hooks/comfy/asset-files.js";
import { HookError } from "#src/service/hooks/hook-error.js";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";
import { copyOf, quick } from "../../../../helpers/hooks/classic-service.js";
import { bearer, type RunningService, serviceStarter } from "../../../../helpers/hooks/hook-service.js";
import { skip } from "../../../../helpers/skip.js";
import { mountDisk, remountDisk, unmountDisk } from "../../../../helpers/small-disk.js";

const HOUR = 3600_000;

describe("AssetFiles", () => {
  const folder = temporaryFolder();
  let now = Date.now();
  const open = (mostBytes = 1000) => new AssetFiles({ folder: folder(), mostBytes, graceMs: HOUR, now: () => now });
  const put = async (assets: AssetFiles, text: string, expected?: string) => {
    const upload = await assets.begin();
    try {
      for (const letter of text) await upload.write(Buffer.from(letter));
      return await upload.commit(expected);
    } finally {
      await upload.discard();
    }
  };
  const name = (hash: string) => ({ hash, contentType: "image/png", filePath: null, tags: [], keepMs: 2 * HOUR });
  const codeOf = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => undefined,
      (error: unknown) => error,
    );
    assert.ok(error instanceof HookError);
    return error.code;
  };
  beforeEach(() => {
    now = Date.now();
  });

  it("replaces an asset of the same id, which counts once", async () => {
    const assets = new AssetFiles({ folder: folder(), mostBytes: 1000, mostAssets: 1, graceMs: HOUR, now: () => now });
    const id = "01234567-89ab-4def-8123-456789abcdef";
    for (const text of ["one", "two"]) {
      const { hash } = await put(assets, text);
      await assets.add({ ...name(hash), id });
      assert.equal((await assets.find(id))!.hash, hash);
    }
    const { hash } = await put(assets, "three");
    assert.equal(await codeOf(assets.add(name(hash))), "storage_full");
  });

  it("tells one of many equal uploads at once that its bytes are new, and counts them once", async () => {
    const assets = open(60);
    for (const text of ["fox", "hare"]) {
      const uploads = await Promise.all(Array.from({ length: 5 }, () => put(assets, text)));
      assert.deepEqual(uploads.filter(({ isNew }) => isNew).length, 1);
    }
    assert.equal(readdirSync(join(folder(), "blobs")).length, 2);
    // 53 bytes are left
    await put(assets, "x".repeat(53));
    assert.equal(await codeOf(put(assets, "y")), "storage_full");
  });

  it("keeps equal bytes once, under their BLAKE3, with a name for each upload", async () => {
    const assets = open();
    const first = await put(assets, "fox");
    const second = await put(assets, "fox");
    assert.deepEqual([first.isNew, second.isNew], [true, false]);
    assert.equal(first.hash, `blake3:${Buffer.from(blake3("fox")).toString("hex")}`);
    const [a, b] = [await assets.add(name(first.hash)), await assets.add(name(first.hash))];
    assert.notEqual(a.id, b.id);
    await assets.remove(a.id);
    assert.equal(await assets.find(a.id), undefined);
    assert.deepEqual(await open().find(b.id), b);
    assert.deepEqual(readdirSync(join(folder(), "blobs")), [first.hash.slice(7)]);
  });

  it("many first uploads at once find the folder", async () => {
    const assets = open();
    const done = await Promise.all(["a", "b", "c", "a"].map((text) => put(assets, text)));
    assert.equal(new Set(done.map(({ hash }) => hash)).size, 3);
  });

  it("refuses another hash than the declared one, and leaves nothing", async () => {
    const assets = open();
    assert.equal(await codeOf(put(assets, "fox", `blake3:${"0".repeat(64)}`)), "hash_mismatch");
    assert.deepEqual(readdirSync(join(folder(), "blobs")), []);
    assert.equal(await codeOf(assets.add(name(`blake3:${"0".repeat(64)}`))), "blob_not_found");
  });

  it("holds no more than its limit, and counts what is discarded no longer", async () => {
    const assets = open(10);
    await put(assets, "12345678");
    assert.equal(await codeOf(put(assets, "abc")), "storage_full");
    await put(assets, "ab");
    assert.equal(await codeOf(put(assets, "c")), "storage_full");
  });

  it("has a bound on the number of names too, since each may be of no bytes", async () => {
    const options = { folder: folder(), mostBytes: 1000, mostAssets: 2, graceMs: HOUR, now: () => now };
    const assets = new AssetFiles(options);
    const { hash } = await put(assets, "");
    const first = await assets.add(name(hash));
    await assets.add(name(hash));
    assert.equal(await codeOf(assets.add(name(hash))), "storage_full");
    await Promise.all([assets.remove(first.id), assets.remove(first.id)]);
    await assets.add(name(hash));
    assert.equal(await codeOf(assets.add(name(hash))), "storage_full");
    assert.equal(await codeOf(new AssetFiles(options).add(name(hash))), "storage_full");
    now += 3 * HOUR;
    await new AssetFiles(options).add(name((await put(new AssetFiles(options), "a")).hash));
  });

  it("removes expired names, then bytes that no job needs any more, and pieces of killed uploads", async () => {
    const assets = open();
    const { hash } = await put(assets, "fox");
    const asset = await assets.add(name(hash));
    const piece = join(folder(), "blobs", ".piece.tmp");
    writeFileSync(piece, "half");
    now += 2 * HOUR;
    assert.equal(await assets.find(asset.id), undefined);
    // a job that refers to the bytes makes them young
    assert.equal(await assets.retain(hash), true);
    await put(assets, "other");
    assert.equal(await assets.sizeOf(hash), 3);
    assert.ok(!readdirSync(join(folder(), "blobs")).includes(".piece.tmp"));
    utimesSync(join(folder(), "blobs", hash.slice(7)), (now - 2 * HOUR) / 1000, (now - 2 * HOUR) / 1000);
    now += 61_000;
    await put(assets, "more");
    assert.equal(await assets.sizeOf(hash), undefined);
    assert.equal(await assets.retain(hash), false);
    assert.deepEqual(readdirSync(join(folder(), "names")), []);
  });

  it("a name that is no id, and a text that is no hash, name nothing", async () => {
    const assets = open();
    await put(assets, "fox");
    for (const id of ["../blobs/x", "", "__proto__", "a".repeat(10_000)])
      assert.equal(await assets.find(id), undefined);
    for (const hash of ["../x", "blake3:..", "", "blake3:".padEnd(71, "G")]) {
      assert.equal(await assets.sizeOf(hash), undefined);
    }
  });
});

/** A picture of no more or fewer bytes than its pixels. */
const picture = (side: number) => {
  const data = new Uint8Array(side * side * 4).fill(7);
  return encodePng({ data, width: side, height: side, channels: 4 }, { level: 0 });
};

describe("a folder of uploads", () => {
  const folder = temporaryFolder();
  const start = serviceStarter();
  const agents: { close(): Promise<void> }[] = [];
  let assets = "";
  beforeEach(() => {
    assets = join(folder(), "out/assets");
    mkdirSync(assets, { recursive: true });
  });
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
  });
  const open = async () => {
    const agent = createGraphAgent({ graph: quick(), outputDir: join(folder(), "out"), host: createPreviewHost() });
    agents.push(agent);
    return start({ agent, config: { comfy_api: true, comfy_classic: "token" } });
  };
  /** Status and code of an upload. */
  const upload = async ({ url }: RunningService, path: string, bytes: Uint8Array, name = "a.png") => {
    const form = new FormData();
    if (path === "/upload/mask") form.append("original_ref", JSON.stringify({ filename: "a.png", type: "input" }));
    form.append(path === "/api/v2/assets" ? "file" : "image", new Blob([new Uint8Array(bytes)]), name);
    const response = await fetch(url + path, { method: "POST", headers: bearer, body: form });
    const body = (await response.json()) as { error?: { code?: string; type?: string } };
    return [response.status, body.error?.code ?? body.error?.type];
  };

  it("on a full disk: 507 by every route, and room again for what fits", async function () {
    if (!mountDisk(assets, "size=256k")) skip(this, "this user may not mount a small disk");
    try {
      const service = await open();
      const [small, large] = [await picture(100), await picture(300)];
      assert.deepEqual(await upload(service, "/upload/image", small), [200, undefined]);
      const kept = filesIn(assets);
      for (const path of ["/upload/image", "/upload/mask", "/api/v2/assets"]) {
        assert.deepEqual(await upload(service, path, large, "b.png"), [507, "storage_full"], path);
        assert.deepEqual(filesIn(assets), kept, path);
      }
      assert.match(service.log(), /ENOSPC/);
      // a mask needs room for its result as well
      assert.deepEqual(await upload(service, "/upload/mask", small, "c.png"), [200, undefined]);
    } finally {
      unmountDisk(assets);
    }
  });

  it("that may not be written: 503, which the log explains; what is there can be read and is written later", async function () {
    const isRoot = process.getuid?.() === 0;
    if (isRoot && !mountDisk(assets, "size=1m")) skip(this, "root may write anywhere, and may not mount a disk");
    const lock = (isLocked: boolean) => {
      if (isRoot) remountDisk(assets, isLocked ? "ro" : "rw");
      else for (const name of ["blobs", "names"]) chmodSync(join(assets, name), isLocked ? 0o555 : 0o755);
    };
    try {
      const service = await open();
      const small = await picture(16);
      assert.deepEqual(await upload(service, "/upload/image", small), [200, undefined]);
      lock(true);
      for (const path of ["/upload/image", "/upload/mask", "/api/v2/assets"]) {
        assert.deepEqual((await upload(service, path, small, "b.png"))[0], 503, path);
      }
      const prompt = await service.post("/prompt", { prompt: copyOf("a.png") });
      assert.deepEqual([prompt.status, /no write permission/.test(await prompt.text())], [503, true]);
      assert.match(service.log(), /EROFS|EACCES/);
      assert.equal((await service.get("/view?type=input&filename=a.png")).status, 200);
      lock(false);
      assert.deepEqual(await upload(service, "/upload/image", small, "b.png"), [200, undefined]);
    } finally {
      if (isRoot) unmountDisk(assets);
    }
  });
});
