import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { blake3 } from "@noble/hashes/blake3";
import {
  any,
  batch,
  createCache,
  createRegistry,
  defineNode,
  executeGraph,
  image,
  invokeNode,
  type RenderOptions,
  registry,
  render,
  Tensor,
  text,
} from "latentkit";
import { PNG } from "pngjs";
import { readReceipt, unknownFields } from "#src/render/receipt/receipt.js";
import { createThreadPool } from "#src/render/threads/thread-pool.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, root, sha256, temporaryFolder } from "../../../helpers/folders.js";
import { node } from "../../../helpers/graph/graph-nodes.js";
import { noisyLake, receiptOf, saved, textsOf } from "../../../helpers/graph/receipt-graphs.js";

const inputDir = join(root, "test/graphs/input");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const fileHash = (name: string) => `sha256:${sha256(readFileSync(join(inputDir, name)))}`;

/** Width, height, channels and samples of an RGB picture, read by another library. */
function pixelsOf(path: string): Buffer {
  const { width, height, data } = PNG.sync.read(readFileSync(path));
  const header = Buffer.alloc(12);
  for (const [index, side] of [width, height, 3].entries()) header.writeUInt32BE(side, index * 4);
  return Buffer.concat([header, data.filter((_, index) => index % 4 < 3)]);
}

describe("receipts", () => {
  const folder = temporaryFolder();
  const run = async (graph: object, options: RenderOptions = {}) => {
    const result = await render(graph, { outputDir: folder(), inputDir, ...options });
    assert.equal(result.status, "success", result.error?.message);
    return result.files.map(({ path }) => path);
  };
  const receipts = async (graph: object, options: RenderOptions = {}) => (await run(graph, options)).map(receiptOf);

  it("hold how a picture was made, and nothing else", async () => {
    const [path] = await run(noisyLake());
    const { prompt } = textsOf(path!);
    assert.deepEqual(receiptOf(path!), {
      version: 1,
      engine: version,
      graph: `sha256:${sha256(Buffer.from(prompt!))}`,
      node: "6",
      index: 0,
      pixels: `blake3:${Buffer.from(blake3(pixelsOf(path!))).toString("hex")}`,
      seeds: { "3.seed": "18446744073709551615", "4.seed": "7" },
      noise: { "3": "gpu", "4": "cpu" },
      inputs: { "lake.png": fileHash("lake.png") },
      host: { name: "preview", preview: true },
    });
    assert.equal(prompt!.includes("18446744073709551615"), true);
  });

  it("are the same bytes with a cache and in a thread", async () => {
    const [first] = await run(noisyLake());
    const cache = createCache({ size: 2 ** 28 });
    const pool = createThreadPool({ threads: 1 });
    try {
      const others = [...(await run(noisyLake(), { cache })), ...(await run(noisyLake(), { cache }))];
      const threaded = await pool.render(noisyLake(), { outputDir: folder(), inputDir });
      others.push(threaded.files[0]!.path);
      for (const other of others) assert.deepEqual(readFileSync(other), readFileSync(first!));
      assert.equal(new Set(others).size, 3);
    } finally {
      await pool.close();
    }
  });

  it("are in a batch's pictures, the same bytes as render's", async () => {
    const [first] = await run(noisyLake(5));
    const out = join(folder(), "batch");
    const written: string[] = [];
    for await (const event of batch(noisyLake(), [{ "3.seed": 5 }], { outputDir: out, inputDir, concurrency: 1 })) {
      if (event.type === "item-done") written.push(...event.files.map(({ path }) => path));
    }
    assert.equal(written.length, 1);
    assert.deepEqual(readFileSync(written[0]!), readFileSync(first!));
  });

  it("are only in files that hold the graph", async () => {
    assert.equal((await receipts(saved(), { metadata: "prompt" }))[0]!.node, "2");
    for (const paths of [
      await run(saved(), { metadata: "none" }),
      await run(saved("lake.png", { save_metadata: false })),
    ])
      assert.deepEqual(textsOf(paths[0]!), {});
    const preview = { ...saved(), "2": node("PreviewImage", { images: ["1", 0] }) };
    assert.equal((await receipts(preview))[0]!.node, "2");
  });

  it("are none of a node's own, nor of executeGraph's", async () => {
    const place = { outputDir: folder(), inputDir };
    const images = Tensor.full([1, 8, 8, 3], 0.5);
    await invokeNode(
      "ext saveImageLazy",
      { images, filename_prefix: "invoked", save_metadata: true },
      { ...place, hidden: { prompt: "{}" } },
    );
    for await (const _ of executeGraph(saved(), place));
    const keys = filesIn(folder()).map((file) => Object.keys(textsOf(join(folder(), file))));
    assert.deepEqual(keys, [["prompt"], ["prompt"]]);
  });

  it("count a node's pictures over a batch and over the elements of a list", async () => {
    const several = defineNode({
      key: "several",
      inputs: {},
      outputs: [{ name: "images", type: "IMAGE", list: true }],
      run: () => [[0.1, 0.2].map((level) => Tensor.full([2, 4, 4, 3], level))],
    });
    const graph = { "1": node("several"), "2": node("SaveImage", { images: ["1", 0], filename_prefix: "x" }) };
    const found = await receipts(graph, { registry: createRegistry([several], registry) });
    assert.deepEqual(
      found.map(({ index }) => index),
      [0, 1, 2, 3],
    );
    assert.equal(new Set(found.map(({ pixels }) => pixels)).size, 2);
  });

  it("name only what the picture is made from", async () => {
    const graph = { ...noisyLake(), "7": node("LoadImage", { image: "night.png" }) };
    const save = node("SaveImage", { images: ["7", 0], filename_prefix: "night" });
    const found = await receipts({ ...graph, "8": save }, { targets: ["6", "8"] });
    const [noisy, night] = [found.find((one) => one.node === "6")!, found.find((one) => one.node === "8")!];
    assert.deepEqual(Object.keys(noisy.inputs), ["lake.png"]);
    assert.deepEqual([night.seeds, night.noise], [{}, {}]);
    assert.deepEqual(night.inputs, { "night.png": fileHash("night.png") });
  });

  it("follow the branch that a literal chooses, both of a computed choice", async () => {
    const unchecked = defineNode({
      key: "unchecked",
      inputs: { image: ["STRING", { image_upload: true }] },
      outputs: { IMAGE: "IMAGE" },
      run: () => assert.fail("the branch is not chosen"),
    });
    const choice = (condition: unknown) => ({
      ...saved(),
      "2": node("ext saveImageLazy", { images: ["4", 0], filename_prefix: "saved", save_metadata: true }),
      "3": node("LoadImage", { image: "night.png" }),
      "4": node("ext if", { any: condition, if: ["1", 0], else: ["3", 0] }),
    });
    const inputs = async (graph: object) => Object.keys((await receipts(graph))[0]!.inputs);
    assert.deepEqual(await inputs(choice("yes")), ["lake.png"]);
    assert.deepEqual(await inputs(choice("")), ["night.png"]);
    const shows = { "5": node("ext showAnythingLazy", { anything: "yes" }) };
    assert.deepEqual(await inputs({ ...choice(["5", 0]), ...shows }), ["lake.png", "night.png"]);
    const gone = { ...choice(["5", 0]), ...shows, "3": node("unchecked", { image: "none.png" }) };
    const [receipt] = await receipts(gone, { registry: createRegistry([unchecked], registry) });
    assert.deepEqual(Object.keys(receipt!.inputs), ["lake.png"]);
  });

  it("name every input for a picture that an expansion saves", async () => {
    const expands = defineNode({
      key: "expands",
      inputs: { images: image() },
      outputs: { done: "*" },
      outputNode: true,
      run: ({ images }) => ({
        result: [null],
        expand: { inner: node("SaveImage", { images: { __value__: images }, filename_prefix: "inner" }) },
      }),
    });
    const graph = { "1": node("LoadImage", { image: "lake.png" }), "2": node("expands", { images: ["1", 0] }) };
    const [receipt] = await receipts(graph, { registry: createRegistry([expands], registry) });
    assert.ok(!["1", "2"].includes(receipt!.node));
    assert.deepEqual(Object.keys(receipt!.inputs), ["lake.png"]);
  });

  it("keep the digits of a seed as text, and of linked ones those of a number", async () => {
    assert.equal((await receipts(noisyLake("00012")))[0]!.seeds["3.seed"], "00012");
    const linked = { ...noisyLake(["7", 0]), "7": node("ext if", { any: 1, if: 5, else: 6 }) };
    assert.deepEqual((await receipts(linked))[0]!.seeds, { "4.seed": "7" });
    const held = { ...noisyLake(["7", 0]), "7": node("PrimitiveInt", { value: 5 }) };
    assert.deepEqual((await receipts(held))[0]!.seeds, { "3.seed": "5", "4.seed": "7" });
  });

  it("know classes by other names, and a host by its own", async () => {
    const graph = saved();
    graph["2"].class_type = "easy saveImageLazy";
    const host = {
      name: "mine",
      preview: false,
      checkpoints: () => [],
      loadCheckpoint: () => Promise.reject(new Error()),
    };
    const [receipt] = await receipts(graph, { classAliases: { "easy ": "ext " }, host });
    assert.deepEqual(receipt!.host, { name: "mine", preview: false });
    assert.deepEqual(Object.keys(receipt!.inputs), ["lake.png"]);
  });

  it("hold the hash of an input file as it is at each run", async () => {
    const own = join(folder(), "in");
    mkdirSync(own);
    const hashes: string[] = [];
    for (const name of ["lake.png", "night.png"]) {
      copyFileSync(join(inputDir, name), join(own, "a.png"));
      hashes.push((await receipts(saved("a.png"), { inputDir: own }))[0]!.inputs["a.png"]!);
    }
    assert.deepEqual(hashes, [fileHash("lake.png"), fileHash("night.png")]);
  });

  it("do not depend on errors of checkLazy", async () => {
    const asks = defineNode({
      key: "asks",
      inputs: { from: any({ lazy: true }) },
      outputs: { out: "IMAGE" },
      checkLazy: ({ from }) => {
        if (from !== undefined) return [];
        if (asked++ > 0) throw new Error("asked twice");
        return ["from"];
      },
      run: ({ from }) => ({ out: from }),
    });
    let asked = 0;
    const graph = {
      ...saved(),
      "2": node("SaveImage", { images: ["3", 0], filename_prefix: "x" }),
      "3": node("asks", { from: ["1", 0] }),
    };
    const [receipt] = await receipts(graph, { registry: createRegistry([asks], registry) });
    assert.deepEqual(Object.keys(receipt!.inputs), ["lake.png"]);
    assert.equal(asked, 2);
  });

  describe("and graphs in the files", () => {
    const refusal = (name: string, key: string) =>
      new RegExp(`${name}: prompt and latentkit are reserved for the graph and its receipt, received "${key}"\\.$`);

    it("are not shadowed by a key of extraPnginfo, which refuses the run", async () => {
      for (const key of ["prompt", "latentkit"]) {
        const options = { outputDir: join(folder(), "none"), inputDir, extraPnginfo: { workflow: {}, [key]: {} } };
        const refused = (run: () => unknown) => refuses(run, "usage.invalid", refusal("extraPnginfo", key));
        await refused(() => render(saved(), options));
        await refused(() => batch(saved(), [{}], options).next());
        await refused(() => executeGraph(saved(), options).next());
        assert.deepEqual(filesIn(folder()), []);
      }
    });

    it("are not shadowed by what a node puts into extra_pnginfo, nor by inputs of those names", async () => {
      const writes = defineNode({
        key: "writes",
        inputs: { images: image(), name: text() },
        outputs: { images: "IMAGE" },
        hidden: { extra: "EXTRA_PNGINFO" },
        run: ({ images, name, extra }) => {
          (extra as Record<string, unknown>)[name] = "mine";
          return { images };
        },
      });
      const graph = (name: string, type: string) => ({
        "1": node("LoadImage", { image: "lake.png" }),
        "2": node("writes", { images: ["1", 0], name }),
        "3": node(type, {
          images: ["2", 0],
          filename_prefix: "x",
          save_metadata: true,
          prompt: "no",
          extra_pnginfo: {},
        }),
      });
      const options = { registry: createRegistry([writes], registry), extraPnginfo: {}, outputDir: folder(), inputDir };
      for (const type of ["SaveImage", "ext saveImageLazy"]) {
        for (const key of ["prompt", "latentkit"]) {
          const { status, error } = await render(graph(key, type), options);
          assert.equal(status, "failed");
          assert.match(error!.message, refusal(".*extra_pnginfo", key));
        }
        assert.deepEqual(
          filesIn(folder()).filter((name) => name.startsWith(".")),
          [],
        );
        const { files } = await render(graph("note", type), options);
        const { prompt, note } = textsOf(files[0]!.path);
        assert.match(prompt!, /^\{"1": \{"class_type": "LoadImage"/);
        assert.equal(note, '"mine"');
      }
    });
  });
});

const hash = `sha256:${"0a".repeat(32)}`;
const receipt = {
  version: 1,
  engine: "0.1.0",
  graph: hash,
  node: "6",
  index: 0,
  pixels: `blake3:${"0b".repeat(32)}`,
  seeds: { "3.seed": "18446744073709551615" },
  noise: { "3": "gpu" },
  inputs: { "lake.png": hash },
  host: { name: "preview", preview: true },
  redacted: ["text"],
};

describe("readReceipt", () => {
  it("reads what a run writes, and keys of later versions", () => {
    assert.deepEqual(readReceipt(JSON.stringify(receipt)), receipt);
    const later = readReceipt(JSON.stringify({ ...receipt, later: 1, host: { ...receipt.host, gpu: 1 } }))!;
    assert.deepEqual(unknownFields(later), ["later", "host.gpu"]);
    assert.deepEqual(unknownFields(receipt as never), []);
  });

  it("refuses everything else", () => {
    const wrong: object[] = [
      { version: 2 },
      { engine: 1 },
      { graph: "sha256:00" },
      { graph: hash.toUpperCase() },
      { node: 6 },
      { node: "6".repeat(5000) },
      { index: -1 },
      { index: 0.5 },
      { pixels: undefined },
      { pixels: hash },
      { seeds: { "3.seed": 7 } },
      { noise: { "3": "tpu" } },
      { inputs: ["lake.png"] },
      { host: "preview" },
      { redacted: "text" },
    ];
    for (const change of wrong) {
      assert.equal(
        readReceipt(JSON.stringify({ ...receipt, ...change })),
        undefined,
        JSON.stringify(change).slice(0, 80),
      );
    }
    for (const text of ["", "{", "null", "[]", "1", `{"__proto__": {}}`, "[".repeat(100_000)]) {
      assert.equal(readReceipt(text), undefined);
    }
  });
});
