import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  batch,
  createCache,
  createRenderer,
  decodePng,
  executeGraph,
  invokeNode,
  render,
  type Tensor,
  validateGraph,
} from "latentkit";
import { verifyImage } from "#src/render/verify/verify.js";
import { refuses } from "../../helpers/errors.js";
import { root, sha256, temporaryFolder } from "../../helpers/folders.js";

const inputDir = join(root, "test/graphs/input");
const [lake, night] = ["lake.png", "night.png"].map((name) => readFileSync(join(inputDir, name))) as [Buffer, Buffer];
const dataOf = (bytes: Uint8Array) => `data:image/png;base64,${Buffer.from(bytes).toString("base64")}`;
const graphOf = (image: string) => ({
  "1": { class_type: "LoadImage", inputs: { image } },
  "2": { class_type: "LoadImageMask", inputs: { image, channel: "red" } },
  "3": { class_type: "JoinImageWithAlpha", inputs: { image: ["1", 0], alpha: ["2", 0] } },
  "4": { class_type: "SaveImage", inputs: { images: ["3", 0], filename_prefix: "a" } },
});
const options = { output: "memory", inputDir: "no such folder" } as const;
const receiptIn = async (bytes: Uint8Array | undefined) =>
  JSON.parse((await decodePng(bytes!)).text.latentkit!) as { inputs: object; pixels: string };

describe("input files of a render", () => {
  const folder = temporaryFolder();

  it("are bytes at hand, whose pictures and receipts are those of files", async () => {
    const files = { "lake.png": lake };
    const own = await render(graphOf("lake.png"), { ...options, files });
    assert.equal(own.status, "success", own.error?.message);
    const expected = await render(graphOf("lake.png"), { output: "memory", inputDir });
    assert.ok(Buffer.from(own.files[0]!.bytes!).equals(expected.files[0]!.bytes!));
    await using renderer = createRenderer({ threads: 1, ...options, files: { "lake.png": night } });
    const rendered = async (more?: object) =>
      (await renderer.render({ graph: graphOf("lake.png"), ...more })).files[0]!.bytes!;
    const other = await rendered();
    assert.ok(!Buffer.from(other).equals(own.files[0]!.bytes!));
    // a buffer with more around it
    const part = Buffer.concat([Buffer.alloc(9), lake]).subarray(9);
    assert.ok(Buffer.from(await rendered({ files: { "lake.png": part } })).equals(own.files[0]!.bytes!));
    assert.ok(Buffer.from(await rendered()).equals(other));
    assert.deepEqual((await receiptIn(other)).inputs, { "lake.png": `sha256:${sha256(night)}` });
  });

  it("are texts of the graph, and verified from the picture alone", async () => {
    const own = await render(graphOf(dataOf(lake)), { ...options, set: {} });
    const bytes = own.files[0]!.bytes!;
    const hash = `sha256:${sha256(lake)}`;
    assert.deepEqual((await receiptIn(bytes)).inputs, { "data:1.image": hash, "data:2.image": hash });
    const file = await render(graphOf("lake.png"), { output: "memory", inputDir });
    assert.equal((await receiptIn(bytes)).pixels, (await receiptIn(file.files[0]!.bytes)).pixels);
    const { status, differences } = await verifyImage(bytes, { inputDir: folder() });
    assert.deepEqual([status, differences], ["verified", []]);
  });

  it("are read anew where their bytes are others, and from the cache where they are the same", async () => {
    const cache = createCache();
    const typesOf = async (bytes: Uint8Array) => {
      const types: string[] = [];
      const files = { "lake.png": bytes };
      const run = executeGraph(graphOf("lake.png"), {
        files,
        inputDir: folder(),
        cache,
        outputDir: folder(),
        targets: ["3"],
      });
      for await (const event of run) if (event.type === "node-start") types.push(event.nodeId);
      return types.sort();
    };
    assert.deepEqual(await typesOf(lake), ["1", "2", "3"]);
    assert.deepEqual(await typesOf(Buffer.from(lake)), []);
    assert.deepEqual(await typesOf(night), ["1", "2", "3"]);
  });

  it("are latents, too, and reach nodes that are invoked alone", async () => {
    const save = {
      "1": { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
      "2": { class_type: "SaveLatent", inputs: { samples: ["1", 0], filename_prefix: "l" } },
    };
    const saved = await render(save, { output: "memory" });
    const files = { "l.latent": saved.files[0]!.bytes! };
    const load = { "1": { class_type: "LoadLatent", inputs: { latent: "l.latent" } } };
    const { status, outputs } = await render(load, { ...options, files, targets: ["1"] });
    assert.equal(status, "success");
    assert.deepEqual((outputs["1"]![0] as { samples: Tensor }).samples.shape, [1, 4, 8, 8]);
    const { result } = await invokeNode("LoadImage", { image: "lake.png" }, { files: { "lake.png": lake } });
    assert.deepEqual((result[0] as Tensor).shape, [1, 64, 64, 3]);
    const address = render(
      { "1": { class_type: "LoadLatent", inputs: { latent: "https://a.example" } } },
      { targets: ["1"] },
    );
    await refuses(address, "input.invalid", /expected a file's name, received "https:\/\/a\.example"/);
  });

  it("are those of a batch", async () => {
    const graph = graphOf("{{name}}");
    const files = { "lake.png": lake, "dusk.png": night };
    const names: string[] = [];
    const items = [{ name: "lake.png" }, { name: "dusk.png" }];
    for await (const event of batch(graph, items, { files, outputDir: folder(), inputDir: folder(), concurrency: 1 })) {
      if (event.type === "item-done") names.push(...event.files.map(({ path }) => path));
    }
    const hashes = await Promise.all(names.sort().map(async (path) => (await receiptIn(readFileSync(path))).inputs));
    assert.deepEqual(hashes, [{ "lake.png": `sha256:${sha256(lake)}` }, { "dusk.png": `sha256:${sha256(night)}` }]);
  });

  it("are checked before anything runs", async () => {
    const errorOf = (image: string, more = {}) => {
      const validation = validateGraph(graphOf(image), { inputDir: folder(), targets: ["1"], ...more });
      return validation.nodeErrors["1"]!.errors[0]!;
    };
    assert.match(errorOf("a.png", { files: { "a.png": Buffer.from("8BPS") } }).sentence, /which is a PSD/);
    assert.match(
      errorOf("data:image/png,abc").sentence,
      /^Node 1 \(LoadImage\), input "image": expected a base64 data: URL/,
    );
    assert.match(errorOf("http://a.example/b.png").sentence, /expected an https: URL without user name or password/);
    const offline = errorOf("https://a.example/b.png", { allowNetwork: false });
    assert.equal(offline.code, "network.forbidden");
    assert.equal(validateGraph(graphOf("https://a.example/b.png"), { inputDir: folder() }).ok, true);
    const files = { "https://a.example/b.png": lake };
    const given = await render(graphOf("https://a.example/b.png"), { ...options, files, allowNetwork: false });
    assert.equal(given.status, "success");
    const wrong = render(graphOf("a.png"), { files: { "a.png": "text" } as never });
    await refuses(wrong, "usage.invalid", /^files: expected an object that maps names to Uint8Arrays/);
    const moved = Uint8Array.from(lake);
    structuredClone(moved, { transfer: [moved.buffer] });
    await refuses(render(graphOf("a.png"), { files: { "a.png": moved } }), "usage.invalid", /^files: .*not moved/);
    const empty = await render(graphOf("lake.png"), { output: "memory", inputDir, files: { a: new Uint8Array() } });
    assert.equal(empty.status, "success", "an unused empty file");
  });

  it("at an address are refused where it is private, and fail their node alone", async () => {
    for (const renderer of [undefined, createRenderer({ threads: 1 })]) {
      const graph = graphOf("https://127.0.0.1:1/b.png");
      const own = { output: "memory", inputDir } as const;
      const { status, error } = await (renderer?.render({ graph, ...own }) ?? render(graph, own));
      await renderer?.close();
      assert.deepEqual([status, error?.code], ["failed", "download.refused"]);
      assert.match(
        error!.message,
        /^Node [12] \(\w+\), input "image": expected a public address, received "https:\/\/127/,
      );
    }
    const picture = await render(graphOf("https://a.example/b.png"), {
      ...options,
      files: { "https://a.example/b.png": lake },
    });
    const verdict = await verifyImage(picture.files[0]!.bytes!);
    assert.equal(verdict.status, "unverifiable");
    assert.match(verdict.differences[0]!.message, /reaches the network/);
  });
});
