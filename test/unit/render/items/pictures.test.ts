import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type BatchOptions, batch, picturesIn } from "latentkit";
import { encodePng } from "#src/io/png/png.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";

type Nodes = Record<string, { class_type: string; inputs: Record<string, unknown> }>;

const load = (image: string): Nodes => ({
  1: { class_type: "LoadImage", inputs: { image } },
  2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "copy" } },
});
const withMask = {
  ...load("photo.png"),
  3: { class_type: "LoadImageMask", inputs: { image: "mask.png", channel: "red" } },
  4: { class_type: "MaskPreview", inputs: { mask: ["3", 0] } },
};

describe("pictures as items", () => {
  const folder = temporaryFolder();
  const path = (name: string) => join(folder(), name);
  const put = async (name: string, red: number) => {
    mkdirSync(dirname(path(name)), { recursive: true });
    const data = Uint8Array.from({ length: 48 }, (_, i) => (i % 3 === 0 ? red : 0));
    writeFileSync(path(name), await encodePng({ width: 4, height: 4, channels: 3, data }));
  };
  /** Runs a batch; results by file name, with the sentence of items that failed. */
  const run = async (graph: object, pattern: string, options: BatchOptions = {}) => {
    const results: Record<string, string> = {};
    const merged = {
      outputDir: path("out"),
      concurrency: 1,
      name: "{name}_{index}",
      metadata: "none" as const,
      ...options,
    };
    for await (const event of batch(graph, picturesIn(path(pattern)), merged)) {
      if (event.type === "item-done") results[event.files[0]!.filename] = Object.entries(event.values).flat().join(" ");
      if (event.type === "item-failed") results[String(Object.values(event.values)[0])] = event.error.message;
      if (event.type === "batch-done")
        Object.assign(results, { "": `${event.done} done, ${event.skipped} skipped, ${event.failed} failed` });
    }
    return results;
  };

  it("fill the only image input of the graph, and name its files", async () => {
    await put("photos/b.png", 2);
    await put("photos/a.b.png", 1);
    assert.deepEqual(await run(load("x.png"), "photos"), {
      "a.b_0_.png": "1.image a.b.png",
      "b_1_.png": "1.image b.png",
      "": "2 done, 0 skipped, 0 failed",
    });
    assert.deepEqual(readFileSync(path("out/b_1_.png")), readFileSync(path("photos/b.png")));
  });

  it("are BMP files too", async () => {
    await put("photos/a.png", 1);
    const [width, height] = [4, 4];
    const bmp = Buffer.alloc(54 + 3 * width * height);
    bmp.write("BM");
    bmp.writeUInt32LE(54, 10);
    bmp.writeUInt32LE(40, 14);
    bmp.writeInt32LE(width, 18);
    bmp.writeInt32LE(height, 22);
    bmp.writeUInt16LE(24, 28);
    writeFileSync(path("photos/b.BMP"), bmp);
    assert.deepEqual(await run(load("x.png"), "photos"), {
      "a_0_.png": "1.image a.png",
      "b_1_.png": "1.image b.BMP",
      "": "2 done, 0 skipped, 0 failed",
    });
  });

  it("fill {{image}} and {{name}} if the graph has them", async () => {
    await put("photos/in/a.png", 1);
    const graph = {
      ...load("{{image}}"),
      3: { class_type: "LoadImage", inputs: { image: "in/a.png" } },
      4: { class_type: "SaveImage", inputs: { images: ["3", 0], filename_prefix: "{{name}}" } },
    };
    assert.deepEqual(await run(graph, "photos/in", { inputDir: path("photos"), name: "{prefix}_{index}" }), {
      "copy_0_.png": "image in/a.png name a",
      "": "1 done, 0 skipped, 0 failed",
    });
    assert.ok(filesIn(path("out")).includes("a_0_.png"));
  });

  it("read from the input folder if they lie in it, else from their own", async () => {
    await put("in/photos/a.png", 1);
    await put("in/mask.png", 9);
    await put("other/a.png", 2);
    const options = { inputDir: path("in"), set: { "3.image": "mask.png" }, name: "{prefix}{name}{index}" };
    assert.equal((await run(withMask, "in/photos/*.png", options))[""], "1 done, 0 skipped, 0 failed");
    await refuses(
      run(withMask, "other/*.png", options),
      "usage.invalid",
      /expected pictures inside the input folder .*in, received ".*other"/,
    );
    await refuses(
      run(withMask, "other/*.png", { set: { "3.image": "mask.png" } }),
      "usage.invalid",
      /because 3\.image reads from it, too; --input \(inputDir\) names a folder that holds both/,
    );
    await refuses(
      run(withMask, "other/*.png"),
      "usage.invalid",
      /expected one image input that nothing else sets, .* received 1\.image and 3\.image/,
    );
    await refuses(run({ 1: { class_type: "EmptyImage", inputs: {} } }, "other"), "usage.invalid", /received none/);
  });

  it("fail alone, with a sentence: links that lead out, files that are not a picture or cannot be read", async () => {
    await put("photos/good.png", 1);
    await put("secret.png", 1);
    symlinkSync(path("secret.png"), path("photos/link.png"));
    symlinkSync("nowhere", path("photos/dead.png"));
    writeFileSync(path("photos/empty.png"), "");
    writeFileSync(path("photos/text.png"), "no picture");
    const results = await run(load("x"), "photos");
    assert.equal(results[""], "1 done, 0 skipped, 4 failed");
    assert.match(results["link.png"]!, /expected the name of a file inside the input folder, received "link\.png"/);
    assert.match(results["dead.png"]!, /which does not exist/);
    assert.match(results["empty.png"]!, /which is empty/);
    assert.match(results["text.png"]!, /which is not a picture/);
  });

  it("render again if a picture has changed, and only there", async () => {
    for (const name of ["a", "b", "c"]) await put(`photos/${name}.png`, 1);
    const options = { journal: path("out/j.jsonl"), resume: true };
    assert.equal((await run(load("x"), "photos", options))[""], "3 done, 0 skipped, 0 failed");
    assert.equal((await run(load("x"), "photos", options))[""], "0 done, 3 skipped, 0 failed");
    await put("photos/b.png", 7);
    utimesSync(path("photos/b.png"), 1e9, 1e9);
    const changed = await run(load("x"), "photos", options);
    assert.equal(changed[""], "1 done, 2 skipped, 0 failed");
    const [name] = Object.keys(changed).filter((name) => name !== "");
    assert.deepEqual(readFileSync(path(`out/${name}`)), readFileSync(path("photos/b.png")));
    await put("photos/aa.png", 3);
    assert.equal((await run(load("x"), "photos", options))[""], "1 done, 3 skipped, 0 failed");
  });

  it("are refused if there are none", async () => {
    mkdirSync(path("empty"));
    await refuses(run(load("x"), "empty"), "items.invalid", /empty: expected at least one picture, received none/);
    await refuses(
      run(load("x"), "none"),
      "file.not-found",
      /none: expected a folder of pictures, or a pattern such as 'photos\/\*\.png'; the file does not exist/,
    );
    writeFileSync(path("a.txt"), "");
    await refuses(run(load("x"), "a.txt"), "usage.invalid", /a\.txt: expected a folder of pictures/);
    await refuses(() => picturesIn(""), "usage.invalid", /picturesIn: expected a folder of pictures or a pattern/);
  });

  it("are listed without a batch, and a path with wildcards that exists is meant as it is", async () => {
    await put("a*[b]/x.png", 1);
    await put("a1/y.png", 1);
    const listed = [];
    for await (const picture of picturesIn(path("a*[b]"))) listed.push(picture);
    assert.deepEqual(listed, [{ image: "x.png", name: "x" }]);
    for await (const picture of picturesIn(path("a*[b]/x.png"))) assert.deepEqual(picture, listed[0]);
  });

  it("are a hundred thousand without their list in the way @long", async () => {
    mkdirSync(path("many"));
    for (let i = 0; i < 100_000; i++) writeFileSync(path(`many/${i}.png`), "");
    let count = 0;
    let last = "";
    for await (const { image } of picturesIn(path("many"))) {
      assert.ok(image > last);
      last = image;
      count++;
    }
    assert.equal(count, 100_000);
    let failed = 0;
    for await (const event of batch(load("x"), picturesIn(path("many/9999*.png")), {
      outputDir: path("out"),
      concurrency: 1,
    }))
      if (event.type === "item-failed") failed++;
    assert.equal(failed, 11);
  });
});
