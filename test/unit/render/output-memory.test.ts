import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createRenderer, decodePng, type RenderResult, render } from "latentkit";
import { refuses } from "../../helpers/errors.js";
import { root, temporaryFolder, tree } from "../../helpers/folders.js";

const inputDir = join(root, "test/graphs/input");
const graph = {
  "1": { class_type: "LoadImage", inputs: { image: "lake.png" } },
  "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "sub/a" } },
  "3": { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
  "4": {
    class_type: "ext saveTextLazy",
    inputs: {
      text: "a lake",
      output_file_path: "notes",
      file_name: "lake",
      file_extension: "txt",
      overwrite: true,
      image: ["1", 0],
    },
  },
  "5": { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 2 } },
  "6": { class_type: "SaveLatent", inputs: { samples: ["5", 0], filename_prefix: "l" } },
  "7": { class_type: "ext saveImageLazy", inputs: { images: ["1", 0], filename_prefix: "b", save_metadata: true } },
};
const targets = ["2", "3", "4", "6", "7"];
const namesOf = ({ files }: RenderResult) => files.map(({ path, subfolder, type }) => [path, subfolder, type]);

describe('output: "memory"', () => {
  const folder = temporaryFolder();

  it("returns the bytes that files would have, receipts included, and writes nothing", async () => {
    const outputDir = join(folder(), "out");
    const own = await render(graph, { targets, inputDir, outputDir, output: "memory" });
    assert.equal(own.status, "success");
    assert.deepEqual(tree(folder()), []);
    await using renderer = createRenderer({ threads: 1, inputDir, output: "memory" });
    const there = await renderer.render({ graph, targets, outputDir });
    assert.deepEqual(tree(folder()), []);
    const written = await render(graph, { targets, inputDir, outputDir });
    assert.deepEqual(namesOf(own), namesOf(written));
    assert.deepEqual(namesOf(there), namesOf(written));
    assert.equal(written.files.length, 6);
    for (const [index, { path, bytes }] of written.files.entries()) {
      assert.equal(bytes, undefined);
      const content = readFileSync(path);
      for (const result of [own, there]) {
        const file = result.files[index]!;
        assert.ok(file.bytes instanceof Uint8Array && content.equals(file.bytes), path);
        // memory of its own, which can move on
        assert.equal(file.bytes.buffer.byteLength, content.length);
      }
    }
    const { text } = await decodePng(own.files[0]!.bytes!);
    assert.deepEqual(Object.keys(text), ["prompt", "latentkit"]);
  });

  it("returns the bytes of every render of a thread, and at the end of a stream", async () => {
    await using renderer = createRenderer({ threads: 1, inputDir, output: "memory" });
    const first = await renderer.render({ graph, targets: ["2"] });
    const stream = renderer.stream({ graph, targets: ["2"] });
    let next = await stream.next();
    while (!next.done) next = await stream.next();
    const [a, b] = [first.files[0]!.bytes!, next.value.files[0]!.bytes!];
    assert.ok(Buffer.from(a).equals(b));
    const written = await renderer.render({ graph, targets: ["2"], output: "files", outputDir: folder() });
    assert.deepEqual([written.files.length, written.files[0]!.bytes], [1, undefined]);
    assert.ok(readFileSync(written.files[0]!.path).equals(a));
  });

  it("returns what was saved before a node failed", async () => {
    const failing = {
      ...graph,
      "10": { class_type: "LoadLatent", inputs: { latent: ["11", 0] } },
      "11": { class_type: "PrimitiveString", inputs: { value: "none.latent" } },
    };
    const result = await render(failing, { targets: ["2", "10"], inputDir, outputDir: folder(), output: "memory" });
    assert.equal(result.status, "failed");
    for (const file of result.files) assert.ok(file.bytes!.length > 0);
    assert.deepEqual(tree(folder()), []);
  });

  it("is one of two values", async () => {
    await refuses(
      render(graph, { output: "buffer" as never }),
      "usage.invalid",
      /^output: expected files, memory, rec/,
    );
  });
});
