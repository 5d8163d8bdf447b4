import assert from "node:assert/strict";
import { decodePng } from "latentkit";
import { classicStarter, ended, picture, submit, viewOf } from "../../../../../helpers/hooks/classic-service.js";
import { until } from "../../../../../helpers/hooks/hook-service.js";

describe("files of the classic API", () => {
  const start = classicStarter();

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
});
