import assert from "node:assert/strict";
import { decodePng, encodePng } from "latentkit";
import { createS3Files } from "latentkit/hooks";
import { classicStarter, ended, picture, quick, submit, viewOf } from "../../../../../helpers/hooks/classic-service.js";
import { bearer, type RunningService, TOKEN, until } from "../../../../../helpers/hooks/hook-service.js";
import { S3_KEYS, s3Server } from "../../../../../helpers/hooks/s3-server.js";
import { RawClient, requestText } from "../../../../../helpers/http/raw-http.js";

describe("files of the classic API", () => {
  const start = classicStarter();
  const s3 = s3Server();

  it("view: previews and channels; never a file of another run or folder", async () => {
    const service = await start();
    const { prompt_id: id } = await submit(service, picture(1));
    const entry = await ended(service, id);
    const plain = await service.get(viewOf(entry));
    assert.equal(plain.headers.get("content-disposition"), 'filename="fox_00001_.png"');
    assert.equal(plain.headers.get("content-type"), "image/png");
    const webp = await service.get(viewOf(entry, { preview: "webp;80" }));
    assert.equal(webp.headers.get("content-type"), "image/webp");
    assert.equal(Buffer.from(await webp.arrayBuffer()).toString("latin1", 8, 12), "WEBP");
    const alpha = await decodePng(
      Buffer.from(await (await service.get(viewOf(entry, { channel: "a" }))).arrayBuffer()),
    );
    assert.deepEqual([alpha.channels, ...alpha.data.subarray(0, 4)], [4, 0, 0, 0, 255]);
    assert.equal((await service.get(viewOf(entry, { channel: "x" }))).status, 400);
    for (const filename of ["../x", "/etc/passwd", "..", "a\\b"]) {
      assert.equal((await service.get(viewOf(entry, { filename }))).status, 400, filename);
    }
    assert.equal((await service.get(viewOf(entry, { filename: "other.png" }))).status, 404);
    assert.equal((await service.get(viewOf(entry, { subfolder: "../.." }))).status, 400);
    assert.equal((await service.get(viewOf(entry, { subfolder: "" }))).status, 404);
    // of a hook: its own routes serve it
    const { run_id } = await service.start("{}");
    await until(async () => (await service.hooks.runs.status(run_id)).finishedAt !== null, "the end");
    const hooked = new URLSearchParams({ filename: "quick_00001_.png", subfolder: `runs/${run_id}` });
    assert.equal((await service.get(`/view?${hooked}`)).status, 404);
  });

  /** Uploads a picture of 16 bits, whose file is small. */
  const uploadDeep = async ({ url }: RunningService, width: number, height: number) => {
    const data = new Uint16Array(width * height * 4).fill(0x1234);
    const file = await encodePng({ data, width, height, channels: 4 }, { level: 1 });
    const form = new FormData();
    form.append("image", new Blob([new Uint8Array(file)]), `deep ${width}x${height}.png`);
    assert.equal((await fetch(`${url}/upload/image`, { method: "POST", headers: bearer, body: form })).status, 200);
    return { file, path: `/view?type=input&filename=${encodeURIComponent(`deep ${width}x${height}.png`)}` };
  };

  it("view: a picture that is too large is sent as it is, or refused for a channel", async () => {
    const service = await start();
    const { file, path } = await uploadDeep(service, 2 ** 24 + 1, 1);
    const whole = await service.get(`${path}&preview=webp`);
    assert.equal(whole.headers.get("content-type"), "image/png");
    assert.deepEqual(Buffer.from(await whole.arrayBuffer()), file);
    const refused = await service.get(`${path}&channel=a`);
    assert.deepEqual([refused.status, /16 megapixels/.test(await refused.text())], [400, true]);
  });

  it("view: a file in a bucket is converted, or sent as it is where it is no picture", async () => {
    const service = await start({ files: createS3Files({ url: s3().url, credentials: S3_KEYS }) });
    const { prompt_id: id } = await submit(service, quick());
    const path = viewOf(await ended(service, id), { preview: "webp" });
    assert.equal((await service.get(path)).headers.get("content-type"), "image/webp");
    for (const [key, { type }] of s3().objects) s3().objects.set(key, { bytes: Buffer.from("no picture"), type });
    assert.equal(await (await service.get(path)).text(), "no picture");
  });

  it("view: clients that leave cost the others nothing", async () => {
    const service = await start();
    const { path } = await uploadDeep(service, 2048, 2048);
    const { path: small } = await uploadDeep(service, 8, 8);
    const headers = [`Authorization: Bearer ${TOKEN}`];
    for (let left = 0; left < 12; left++) {
      const client = new RawClient(service.port).send(requestText(`GET ${path}&preview=webp`, headers));
      await new Promise((resolve) => setTimeout(resolve, left * 15));
      client.destroy();
    }
    const response = await service.get(`${small}&channel=rgb`);
    const { data } = await decodePng(Buffer.from(await response.arrayBuffer()));
    assert.deepEqual([...data.subarray(0, 3)], [0x12, 0x12, 0x12]);
    assert.doesNotMatch(service.log(), /internal error/);
  });

  it("view and masks: the service answers while it converts a large picture @alone", async () => {
    const service = await start();
    const { file, path } = await uploadDeep(service, 3072, 3072);
    /** Longest time of a look at the service meanwhile, as a share of the time of the work. */
    const shareOf = async (work: () => Promise<Response>) => {
      let isOver = false;
      let longest = 0;
      const from = performance.now();
      const working = work().finally(() => {
        isOver = true;
      });
      while (!isOver) {
        const since = performance.now();
        assert.equal((await service.get("/health")).status, 200);
        longest = Math.max(longest, performance.now() - since);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      const response = await working;
      assert.equal(response.status, 200);
      await response.arrayBuffer();
      return longest / (performance.now() - from);
    };
    await service.get(`${path}&channel=rgb`);
    const form = new FormData();
    form.append("original_ref", JSON.stringify({ filename: "deep 3072x3072.png", type: "input" }));
    form.append("image", new Blob([new Uint8Array(file)]), "mask.png");
    const mask = () => fetch(`${service.url}/upload/mask`, { method: "POST", headers: bearer, body: form });
    for (const work of [
      () => service.get(`${path}&preview=jpeg`),
      () => service.get(`${path}&channel=rgb`),
      () => service.get(`${path}&channel=a`),
      mask,
    ]) {
      const share = await shareOf(work);
      assert.ok(share < 0.25, `a look took ${Math.round(share * 100)} % of the time`);
    }
  });
});
