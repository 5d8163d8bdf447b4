import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodePng, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";
import { pngText } from "../../../../helpers/png/png-chunks.js";

const images = Tensor.full([2, 3, 4, 3], 0.5);

describe("SaveImage", () => {
  const folder = temporaryFolder();
  const save = (inputs: object, hidden = {}) => invokeNode("SaveImage", { ...inputs }, { outputDir: folder(), hidden });

  it("names files as the host does and goes on counting", async () => {
    const { result, ui } = await save({ images, filename_prefix: "sub/fox" });
    assert.deepEqual(result, []);
    assert.deepEqual(ui?.images, [
      { filename: "fox_00001_.png", subfolder: "sub", type: "output" },
      { filename: "fox_00002_.png", subfolder: "sub", type: "output" },
    ]);
    await save({ images, filename_prefix: "sub/fox" });
    assert.equal(filesIn(folder()).length, 4);
    assert.ok(filesIn(folder()).includes(join("sub", "fox_00004_.png")));
  });

  it("writes the pixels and the metadata", async () => {
    const hidden = { prompt: { 1: { class_type: "x" } }, extra_pnginfo: { workflow: { nodes: [] } } };
    await save({ images, filename_prefix: "a" }, hidden);
    const bytes = readFileSync(join(folder(), "a_00001_.png"));
    const { width, height, channels, data } = await decodePng(bytes);
    assert.deepEqual([width, height, channels], [4, 3, 3]);
    assert.ok(data.every((value) => value === 127));
    assert.deepEqual(pngText(bytes), [
      ["prompt", '{"1": {"class_type": "x"}}'],
      ["workflow", '{"nodes": []}'],
    ]);
  });

  it("refuses bad inputs before it writes", async () => {
    await refuses(save({ images, filename_prefix: "../x" }), "input.invalid", /filename_prefix/);
    await refuses(save({ images, filename_prefix: ["x"] }), "input.wrong-type", /filename_prefix/);
    await refuses(save({ filename_prefix: "x" }), "input.missing", /images/);
    await refuses(save({ images: "x", filename_prefix: "x" }), "input.wrong-type", /images/);
    await refuses(save({ images: Tensor.zeros([1, 0, 4, 3]), filename_prefix: "x" }), /.*/);
    assert.deepEqual(filesIn(folder()), []);
  });
});
