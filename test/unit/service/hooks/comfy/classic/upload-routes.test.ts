import assert from "node:assert/strict";
import { decodePng, encodePng } from "latentkit";
import { classicStarter, copyOf, ended, submit, viewOf } from "../../../../../helpers/hooks/classic-service.js";
import { bearer, type RunningService } from "../../../../../helpers/hooks/hook-service.js";

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
      ...{ name: "a.png", subfolder: "deep/er", type: "input" },
    });
    for (const fields of [{ subfolder: ".." }, { subfolder: "/etc" }, { type: "models" }]) {
      assert.equal((await upload(service, one, "a.png", fields as never)).status, 400);
    }
    assert.equal((await upload(service, new Uint8Array(20_000), "big.png")).status, 413);
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
      ...{ name: "mask.png", subfolder: "", type: "input" },
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
