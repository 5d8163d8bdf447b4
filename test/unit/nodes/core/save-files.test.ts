import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decodePng, invokeNode, LatentkitError, randn, render, Tensor } from "latentkit";
import { ItemFiles } from "#src/io/files/item-files.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { validPaths } from "#src/nodes/core/save-files.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";
import { pngText } from "../../../helpers/png/png-chunks.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

const images = Tensor.full([2, 3, 4, 3], 0.5);

describe("MaskPreview", () => {
  const folder = temporaryFolder();

  it("saves each mask as a grey picture for temporary files", async () => {
    const mask = Tensor.from([0, 1, 0.5, 0.2, 1, 0, 0, 1], [2, 1, 2, 2]);
    const { ui } = await invokeNode("MaskPreview", { mask }, { outputDir: folder() });
    assert.deepEqual(ui?.images, [
      { filename: "mask_00001_.png", subfolder: "", type: "temp" },
      { filename: "mask_00002_.png", subfolder: "", type: "temp" },
    ]);
    const files = filesIn(folder());
    assert.deepEqual(files, [join("temp", "mask_00001_.png"), join("temp", "mask_00002_.png")]);
    const { data } = await decodePng(readFileSync(join(folder(), files[0]!)));
    assert.deepEqual(
      [...data],
      [0, 255, 127, 51].flatMap((value) => [value, value, value]),
    );
  });
});

describe("PreviewImage", () => {
  const folder = temporaryFolder();

  it("keeps its files out of the output folder's root", async () => {
    const { ui } = await invokeNode("PreviewImage", { images }, { outputDir: folder() });
    assert.deepEqual(ui?.images, [
      { filename: "preview_00001_.png", subfolder: "", type: "temp" },
      { filename: "preview_00002_.png", subfolder: "", type: "temp" },
    ]);
    assert.deepEqual(filesIn(folder()), [join("temp", "preview_00001_.png"), join("temp", "preview_00002_.png")]);
  });

  it("refuses anything but an image", async () => {
    await refuses(invokeNode("PreviewImage", { images: [1] }, { outputDir: folder() }), "input.wrong-type", /images/);
  });
});

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

describe("SaveLatent", () => {
  const folder = temporaryFolder();
  const samples = { samples: randn([1, 4, 2, 3], { seed: 1 }) };
  const save = (filename_prefix: string, hidden = {}) =>
    invokeNode("SaveLatent", { samples, filename_prefix }, { outputDir: folder(), hidden });

  it("names files as the host does and goes on counting", async () => {
    const { result, ui } = await save("latents/fox");
    assert.deepEqual(result, []);
    assert.deepEqual(ui?.latents, [{ filename: "fox_00001_.latent", subfolder: "latents", type: "output" }]);
    await save("latents/fox");
    assert.deepEqual(filesIn(folder()), [join("latents", "fox_00001_.latent"), join("latents", "fox_00002_.latent")]);
  });

  it("writes the values, the mark of their scale, and the metadata", async () => {
    await save("a", { prompt: { 1: { class_type: "x" } }, extra_pnginfo: { workflow: { nodes: [] } } });
    const { tensors, metadata } = readSafetensors(readFileSync(join(folder(), "a_00001_.latent")));
    assert.deepEqual(metadata, { prompt: '{"1": {"class_type": "x"}}', workflow: '{"nodes": []}' });
    assertSameBits(toTensor(tensors.get("latent_tensor")!), samples.samples);
    assertSameBits(toTensor(tensors.get("latent_format_version_0")!), Tensor.zeros([0]));
  });

  it("takes its name from the item in a batch", async () => {
    const files = new ItemFiles({ batch: "0123456789ab", position: 3, number: 4, isKept: false });
    const names = [await files.writeNumbered(folder(), "p", "_.latent", Buffer.from("x"))];
    names.push(await files.writeNumbered(folder(), "p", "_.latent", Buffer.from("x")));
    assert.deepEqual(names, ["p_00004_.latent", "p_00004-2_.latent"]);
  });

  it("refuses a prefix that leads out, before it writes", async () => {
    await refuses(save("../x"), "input.invalid", /filename_prefix/);
    assert.deepEqual(filesIn(folder()), []);
  });
});

describe("SaveImageWebsocket", () => {
  const folder = temporaryFolder();

  it("saves each image among the temporary files", async () => {
    const { ui } = await invokeNode("SaveImageWebsocket", { images }, { outputDir: folder() });
    assert.deepEqual(ui?.images, [
      { filename: "websocket_00001_.png", subfolder: "", type: "temp" },
      { filename: "websocket_00002_.png", subfolder: "", type: "temp" },
    ]);
    const files = [join("temp", "websocket_00001_.png"), join("temp", "websocket_00002_.png")];
    assert.deepEqual(filesIn(folder()), files);
  });

  it("saves PNG files whatever the format of the run", async () => {
    const graph = {
      1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
      2: { class_type: "SaveImageWebsocket", inputs: { images: ["1", 0] } },
      3: { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
    };
    await render(graph, { outputDir: folder(), format: { type: "webp" } });
    assert.deepEqual(filesIn(folder()), [join("temp", "preview_00001_.webp"), join("temp", "websocket_00001_.png")]);
  });
});

describe("validPaths", () => {
  it("returns the fault of each input, and leaves other types to the type check", () => {
    assert.equal(validPaths({ path: "a/b" }, { name: "c" }), true);
    assert.equal(validPaths({ path: 5 }, { name: undefined }), true);
    assert.deepEqual(validPaths({ path: "../a" }, { name: "b/c" }), {
      path: 'expected a path inside the output folder, received "../a"',
      name: 'expected a file name without folders, received "b/c"',
    });
  });
});

describe("graphs that write outside the output folder", () => {
  const folder = temporaryFolder();
  const text = (inputs: object) => ({
    class_type: "ext saveTextLazy",
    inputs: { text: "a", output_file_path: "t", file_name: "f", file_extension: "txt", overwrite: true, ...inputs },
  });

  it("are refused before any node has written anything", async () => {
    const graph = { 1: text({}), 2: text({ text: ["1", 0], file_name: "../f" }) };
    await assert.rejects(
      render(graph, { outputDir: folder(), targets: ["2"] }),
      (error: unknown) =>
        error instanceof LatentkitError &&
        /^Node 2 \(ext saveTextLazy\), input "file_name": expected .*, received "\.\.\/f"\.$/.test(error.message),
    );
    assert.deepEqual(readdirSync(folder()), []);
  });

  it("name the input also if the path comes through a link", async () => {
    const shown = { class_type: "ext showAnythingLazy", inputs: { anything: "../f" } };
    const { status, error } = await render({ 1: shown, 2: text({ file_name: ["1", 0] }) }, { outputDir: folder() });
    assert.equal(status, "failed");
    assert.match(error!.message, /^Node 2 \(ext saveTextLazy\), input "file_name": expected .*, received "\.\.\/f/);
    assert.deepEqual(readdirSync(folder()), []);
  });
});
