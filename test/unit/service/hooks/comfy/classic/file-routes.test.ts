import assert from "node:assert/strict";
import { decodePng, encodePng } from "latentkit";
import { createS3Files } from "latentkit/hooks";
import {
  classicStarter,
  copyOf,
  ended,
  picture,
  quick,
  submit,
  viewOf,
} from "../../../../../helpers/hooks/classic-service.js";
import { bearer, type RunningService, TOKEN, until } from "../../../../../helpers/hooks/hook-service.js";
import { S3_KEYS, s3Server } from "../../../../../helpers/hooks/s3-server.js";
import { RawClient, requestText } from "../../../../../helpers/http/raw-http.js";

const png = (channels: 3 | 4, value: number, width = 16) =>
  encodePng({ data: new Uint8Array(width * 8 * channels).fill(value), width, height: 8, channels });

describe("uploads of the classic API", () => {
  const start = classicStarter();

  const upload = (
    service: RunningService,
    bytes: Uint8Array,
    name: string,
    fields: Record<string, string> = {},
    path = "/upload/image",
  ) => {
    const form = new FormData();
    form.append("image", new Blob([new Uint8Array(bytes)]), name);
    for (const [key, value] of Object.entries(fields)) form.append(key, value);
    return fetch(service.url + path, { method: "POST", headers: bearer, body: form });
  };

  it("uploads: equal bytes keep their name, others get a number; outputs are inputs", async () => {
    const service = await start({ limits: { upload_bytes: 10_000 } });
    const [one, two] = [await png(3, 1), await png(3, 2)];
    const named = async (response: Response) => ((await response.json()) as { name: string }).name;
    assert.equal(await named(await upload(service, one, "a.png")), "a.png");
    assert.equal(await named(await upload(service, one, "a.png")), "a.png");
    assert.equal(await named(await upload(service, two, "a.png")), "a (1).png");
    assert.equal(await named(await upload(service, two, "a.png", { overwrite: "true" })), "a.png");
    assert.deepEqual(await (await upload(service, one, "C:\\a.png", { subfolder: "deep/er" })).json(), {
      name: "a.png",
      subfolder: "deep/er",
      type: "input",
    });
    for (const fields of [{ subfolder: ".." }, { subfolder: "/etc" }, { type: "models" }]) {
      assert.equal((await upload(service, one, "a.png", fields as never)).status, 400);
    }
    const big = await upload(service, new Uint8Array(20_000), "big.png");
    assert.match(await big.text(), /the body is too large: expected at most 10000 bytes of a file/);
    const long = { subfolder: "x".repeat(5000), metadata: "y".repeat(5000) };
    assert.match(
      await (await upload(service, one, "a.png", long)).text(),
      /expected at most 4096 bytes of \\"subfolder/,
    );
    assert.equal((await upload(service, one, "a.png", { metadata: long.metadata })).status, 200);
    const named255 = await upload(service, one, `${"n".repeat(252)}.png`);
    assert.match(await named255.text(), /image: expected a file name of at most 255 printable characters/);
    const { prompt_id: id } = await submit(service, copyOf("deep/er/a.png"));
    const entry = await ended(service, id);
    assert.match(JSON.stringify(entry.prompt[2]), /"image":"deep\/er\/a.png"/);
    const { filename, subfolder } = entry.outputs["9"]!.images![0]!;
    const { text, data } = await decodePng(Buffer.from(await (await service.get(viewOf(entry))).arrayBuffer()));
    assert.equal(data[0], 1);
    assert.match(text.prompt!, /"image": "deep\/er\/a.png"/);
    const { prompt_id: next } = await submit(service, copyOf(`${subfolder}/${filename} [output]`));
    assert.equal((await ended(service, next)).status.status_str, "success");
  });

  it("mask: of the size of its original, with alpha, of a file that exists", async () => {
    const service = await start();
    await upload(service, await png(3, 9), "a.png");
    const original = { original_ref: JSON.stringify({ filename: "a.png", type: "input" }) };
    const mask = (bytes: Uint8Array, fields: Record<string, string>) =>
      upload(service, bytes, "mask.png", fields, "/upload/mask");
    assert.deepEqual(await (await mask(await png(4, 7), original)).json(), {
      name: "mask.png",
      subfolder: "",
      type: "input",
    });
    const response = await service.get("/view?filename=mask.png&type=input");
    const { data } = await decodePng(Buffer.from(await response.arrayBuffer()));
    assert.deepEqual([...data.subarray(0, 4)], [9, 9, 9, 7]);
    assert.equal((await mask(await png(4, 7, 8), original)).status, 400);
    assert.equal((await mask(await png(3, 7), original)).status, 400);
    assert.equal((await mask(Buffer.from("no picture"), original)).status, 400);
    assert.equal((await mask(await png(4, 7), {})).status, 400);
    const unknown = { original_ref: JSON.stringify({ filename: "b.png", type: "input" }) };
    assert.equal((await mask(await png(4, 7), unknown)).status, 404);
  });

  it("forms without a file, or with two, are refused", async () => {
    const service = await start();
    const send = (form: FormData) =>
      fetch(`${service.url}/upload/image`, { method: "POST", headers: bearer, body: form });
    const form = new FormData();
    form.append("overwrite", "true");
    assert.equal((await send(form)).status, 400);
    for (const name of ["a.png", "b.png"]) form.append("image", new Blob(["x"]), name);
    assert.equal((await send(form)).status, 400);
    assert.equal((await service.post("/upload/image", "{}")).status, 415);
  });
});

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

  it("view: a download that is resumed gets the whole of a file that has changed", async () => {
    const service = await start();
    const entry = await ended(service, (await submit(service, picture(1))).prompt_id);
    const { headers } = await service.get(viewOf(entry));
    const resume = (ifRange: string) =>
      fetch(service.url + viewOf(entry), { headers: { ...bearer, range: "bytes=4-7", "if-range": ifRange } });
    const resumed = await resume(headers.get("last-modified")!);
    assert.deepEqual([resumed.status, (await resumed.arrayBuffer()).byteLength], [206, 4]);
    for (const ifRange of [new Date(0).toUTCString(), headers.get("etag")!, '"other"']) {
      const whole = await resume(ifRange);
      assert.deepEqual([whole.status, whole.headers.get("content-range")], [200, null], ifRange);
      assert.equal(String((await whole.arrayBuffer()).byteLength), headers.get("content-length"));
    }
  });

  it("view: a picture that is too large is sent as it is, or refused for a channel", async () => {
    const service = await start();
    const { file, path } = await uploadDeep(service, 2 ** 24 + 1, 1);
    const whole = await service.get(`${path}&preview=webp`);
    assert.equal(whole.headers.get("content-type"), "image/png");
    assert.deepEqual(Buffer.from(await whole.arrayBuffer()), file);
    const refused = await service.get(`${path}&channel=a`);
    assert.deepEqual([refused.status, /16 megapixels/.test(await refused.text())], [400, true]);
  });

  it("view: a file in a bucket is converted, or sent as it is if it is not a picture", async () => {
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
