import assert from "node:assert/strict";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createPreviewHost, encodePng } from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { filesIn, temporaryFolder } from "../../../../../helpers/folders.js";
import { copyOf, quick } from "../../../../../helpers/hooks/classic-service.js";
import { bearer, type RunningService, serviceStarter } from "../../../../../helpers/hooks/hook-service.js";
import { skip } from "../../../../../helpers/skip.js";
import { mountDisk, remountDisk, unmountDisk } from "../../../../../helpers/small-disk.js";

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
      assert.deepEqual([prompt.status, /may not write/.test(await prompt.text())], [503, true]);
      assert.match(service.log(), /EROFS|EACCES/);
      assert.equal((await service.get("/view?type=input&filename=a.png")).status, 200);
      lock(false);
      assert.deepEqual(await upload(service, "/upload/image", small, "b.png"), [200, undefined]);
    } finally {
      if (isRoot) unmountDisk(assets);
    }
  });
});
