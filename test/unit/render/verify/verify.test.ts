import assert from "node:assert/strict";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import {
  createRegistry,
  decodePng,
  defineNode,
  encodePng,
  image,
  type RenderOptions,
  registry,
  render,
} from "latentkit";
import { PNG } from "pngjs";
import sharp from "sharp";
import { type Receipt, textHash } from "#src/render/receipt/receipt.js";
import { type VerifyOptions, verifyImage } from "#src/render/verify/verify.js";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { filesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { node } from "../../../helpers/graph/graph-nodes.js";
import { noisyLake, saved } from "../../../helpers/graph/receipt-graphs.js";
import { growsLinearly } from "../../../helpers/growth.js";

const inputDir = join(root, "test/graphs/input");

describe("verifyImage", () => {
  const folder = temporaryFolder();
  // a temporary folder of this process alone: tests of other processes verify pictures at the same time
  const usual = process.env.TMPDIR;
  const temporary = () => join(folder(), "temporary");
  beforeEach(() => {
    mkdirSync(temporary());
    process.env.TMPDIR = temporary();
  });
  afterEach(() => {
    if (usual === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = usual;
  });
  const picture = async (graph: object = noisyLake(), options: RenderOptions = {}) => {
    const result = await render(graph, { outputDir: join(folder(), "out"), inputDir, ...options });
    assert.equal(result.status, "success", result.error?.message);
    return readFileSync(result.files.at(-1)!.path);
  };
  const verdict = async (file: Buffer, options: VerifyOptions = {}) => {
    const { status, differences } = await verifyImage(file, { inputDir, ...options });
    const words = differences.map(({ what, message }) => `${what}: ${message}`);
    assert.ok(status !== "verified" || differences.length === 0);
    return [status, ...words];
  };
  /** The same picture with other texts. */
  const withTexts = async (file: Buffer, change: (texts: Record<string, string>) => object) => {
    const { text, ...pixels } = await decodePng(file);
    const texts = { ...text, ...change(text) } as Record<string, string | undefined>;
    const kept = Object.entries(texts).filter((pair): pair is [string, string] => pair[1] !== undefined);
    return encodePng({ ...pixels, data: pixels.data as Uint8Array }, { text: kept });
  };
  const withReceipt = (file: Buffer, change: object) =>
    withTexts(file, ({ latentkit }) => ({ latentkit: JSON.stringify({ ...JSON.parse(latentkit!), ...change }) }));
  /** A file whose graph and receipt were both made by a stranger. */
  const forged = async (graph: object, nodeId: string) => {
    const file = await picture(saved());
    const prompt = JSON.stringify(graph);
    const both = await withTexts(file, () => ({ prompt }));
    return withReceipt(both, { graph: textHash(prompt), node: nodeId });
  };

  it("verifies a rendered picture, and leaves no file behind", async () => {
    const file = await picture();
    const written = filesIn(folder());
    assert.deepEqual(await verdict(file), ["verified"]);
    assert.deepEqual(filesIn(folder()), written);
    assert.deepEqual(readdirSync(temporary()), []);
  });

  it("renders only what the picture needs", async () => {
    const graph = { ...saved(), "3": node("LoadImage", { image: "night.png" }) };
    const fails = { ...graph, "4": node("SaveImage", { images: ["3", 0], filename_prefix: "other" }) };
    const file = await picture(fails, { targets: ["2"] });
    const own = join(folder(), "in");
    mkdirSync(own);
    copyFileSync(join(inputDir, "lake.png"), join(own, "lake.png"));
    assert.deepEqual(await verdict(file, { inputDir: own }), ["verified"]);
  });

  it("verifies each picture of a batch by its number", async () => {
    const graph = noisyLake();
    graph["2"].inputs.batch_size = 3;
    const { files } = await render(graph, { outputDir: folder(), inputDir });
    assert.equal(files.length, 3);
    for (const { path } of files) assert.deepEqual(await verdict(readFileSync(path)), ["verified"]);
    const last = readFileSync(files[2]!.path);
    const [status, why] = await verdict(await withReceipt(last, { index: 0 }));
    assert.deepEqual([status, why], ["different", "rendered: Rendered again, picture 0 of node 6 has other pixels."]);
    const [, none] = await verdict(await withReceipt(last, { index: 3 }));
    assert.equal(none, "rendered: It cannot be rendered again: Node 6 does not save a picture 3.");
  });

  it("finds a picture that was edited, by a single sample", async () => {
    const file = await picture();
    const image = PNG.sync.read(file);
    const { text } = await decodePng(file);
    const edit = async (change: (data: Uint8Array) => void) => {
      const data = Uint8Array.from(image.data.filter((_, index) => index % 4 < 3));
      change(data);
      return encodePng({ data, width: image.width, height: image.height, channels: 3 }, { text });
    };
    assert.deepEqual(await verdict(await edit(() => {})), ["verified"]);
    const edited = await edit((data) => {
      data[100]! ^= 1;
    });
    assert.deepEqual(await verdict(edited), [
      "different",
      "pixels: The picture was edited: its pixels are not those that were saved.",
    ]);
  });

  it("takes a file that was packed again without loss, also with fewer channels", async () => {
    const grey = join(folder(), "in");
    mkdirSync(grey);
    const bytes = Uint8Array.from({ length: 192 }, (_, i) => Math.floor(i / 3));
    writeFileSync(join(grey, "grey.png"), await encodePng({ data: bytes, width: 8, height: 8, channels: 3 }));
    const file = await picture(saved("grey.png"), { inputDir: grey });
    const { text } = await decodePng(file);
    const packed = await sharp(file).toColourspace("b-w").png({ compressionLevel: 9 }).toBuffer();
    const decoded = await decodePng(packed);
    assert.equal(decoded.channels, 1);
    const own = await encodePng({ ...decoded, data: decoded.data as Uint8Array }, { text });
    assert.deepEqual(await verdict(own, { inputDir: grey }), ["verified"]);
    const other = Uint8Array.from(decoded.data, (value) => value ^ 1);
    const edited = await encodePng({ ...decoded, data: other }, { text });
    assert.match((await verdict(edited, { inputDir: grey }))[1]!, /^pixels: /);
  });

  it("finds an edited graph, and a receipt of another graph", async () => {
    const file = await picture();
    const edited = await withTexts(file, ({ prompt }) => ({ prompt: prompt!.replace("18446744073709551615", "5") }));
    assert.deepEqual(await verdict(edited), [
      "different",
      "prompt: The graph in the file was edited: it is not the one that was rendered.",
      'receipt: The receipt has the seed 3.seed as "18446744073709551615", the graph in the file as "5".',
    ]);
    const { prompt } = (await decodePng(edited)).text;
    assert.deepEqual(await verdict(await withReceipt(edited, { graph: textHash(prompt!) })), [
      "different",
      "rendered: Rendered again, picture 0 of node 6 has other pixels.",
      'receipt: The receipt has the seed 3.seed as "18446744073709551615", the graph in the file as "5".',
    ]);
  });

  it("finds seeds or noise that differ from the graph", async () => {
    const file = await picture();
    const { seeds, noise } = JSON.parse((await decodePng(file)).text.latentkit!) as Receipt;
    const told = (message: string) => ["different", `receipt: ${message}`];
    assert.deepEqual(
      await verdict(await withReceipt(file, { seeds: { ...seeds, "3.seed": "7" } })),
      told('The receipt has the seed 3.seed as "7", the graph in the file as "18446744073709551615".'),
    );
    assert.deepEqual(
      await verdict(await withReceipt(file, { seeds: { ...seeds, "9.seed": "7" } })),
      told('The receipt has the seed 9.seed as "7", the graph in the file as none.'),
    );
    const { "3.seed": _, ...rest } = seeds;
    assert.deepEqual(
      await verdict(await withReceipt(file, { seeds: rest })),
      told('The receipt has the seed 3.seed as none, the graph in the file as "18446744073709551615".'),
    );
    // a receipt that says it is of another version hides nothing by that
    const older = await verdict(await withReceipt(file, { seeds: {}, noise: {}, inputs: {}, engine: "0.0.1" }));
    assert.equal(older[0], "different");
    assert.match(older.at(-1)!, /^engine: /);
    assert.ok(older.some((words) => words.startsWith("receipt: The receipt has the seed 3.seed as none")));
    const [id, stream] = Object.entries(noise)[0]!;
    const other = stream === "cpu" ? "gpu" : "cpu";
    assert.deepEqual(
      await verdict(await withReceipt(file, { noise: { ...noise, [id]: other } })),
      told(`The receipt has the noise of node ${id} as "${other}", the graph in the file as "${stream}".`),
    );
  });

  it("names the input file that differs or is gone", async () => {
    const file = await picture();
    const own = join(folder(), "in");
    mkdirSync(own);
    assert.deepEqual(await verdict(file, { inputDir: own }), [
      "different",
      'rendered: It cannot be rendered again: Node 1 (LoadImage), input "image": expected a file in the input folder, received "lake.png", which does not exist.',
      'input: Input file: expected a file in the input folder, received "lake.png", which does not exist.',
    ]);
    copyFileSync(join(inputDir, "night.png"), join(own, "lake.png"));
    assert.deepEqual((await verdict(file, { inputDir: own })).at(-1), 'input: The input file "lake.png" has changed.');
  });

  it("verifies a picture of another version, and says so", async () => {
    const file = await picture();
    const { status, differences, remarks } = await verifyImage(await withReceipt(file, { engine: "0.0.1" }), {
      inputDir,
    });
    assert.deepEqual([status, differences], ["verified", []]);
    assert.match(remarks[0]!.message, /^It was rendered by latentkit 0\.0\.1; this is \d/);
  });

  it("names another version and another host for equal pixels", async () => {
    const file = await picture();
    const elsewhere = { engine: "0.0.1", host: { name: "onnx", preview: false } };
    for (const change of [elsewhere, { ...elsewhere, index: 1 }]) {
      const [status, ...words] = await verdict(await withReceipt(file, change));
      assert.equal(status, "different");
      const host = words.slice(-3, -1);
      assert.match(words.at(-1)!, /^engine: It was rendered by latentkit 0\.0\.1; this is \d/);
      assert.deepEqual(host, [
        'host: Its models came from the host "onnx"; this is "preview".',
        "host: The receipt says that it is not a preview; this host renders previews.",
      ]);
    }
    assert.deepEqual(await verdict(await withReceipt(file, { host: { name: "preview", preview: false } })), [
      "different",
      "host: The receipt says that it is not a preview; this host renders previews.",
    ]);
  });

  it("finds input files that receipt and graph name differently", async () => {
    const file = await picture();
    const { inputs } = JSON.parse((await decodePng(file)).text.latentkit!) as Receipt;
    const hash = `sha256:${"0a".repeat(32)}`;
    const inputsOf = async (changed: object) => verdict(await withReceipt(file, { inputs: changed }));
    const told = (message: string) => ["different", `input: ${message}`];
    assert.deepEqual(await inputsOf({ "lake.png": hash }), told('The input file "lake.png" has changed.'));
    assert.deepEqual(
      await inputsOf({ ...inputs, "night.png": hash }),
      told('The receipt has the input file "night.png", which the graph in the file does not need.'),
    );
    assert.deepEqual(
      await inputsOf({}),
      told('The receipt lacks the input file "lake.png", which the graph in the file needs.'),
    );
  });

  it("finds unknown fields, and values that should be hidden", async () => {
    const file = await picture();
    assert.deepEqual(
      await verdict(await withReceipt(file, { author: "x", host: { name: "preview", preview: true, gpu: 1 } })),
      [
        "different",
        'receipt: The receipt has "author", which this version does not know.',
        'receipt: The receipt has "host.gpu", which this version does not know.',
      ],
    );
    const shown = (key: string) =>
      `redacted: The receipt says that ${JSON.stringify(key)} is hidden, but the graph in the file shows it.`;
    for (const key of ["3.seed", "positive", "class_type", "6"]) {
      assert.deepEqual(await verdict(await withReceipt(file, { redacted: [key, "nowhere"] })), [
        "different",
        shown(key),
      ]);
    }
    // hiding something does not excuse what a receipt tells
    const hidden = await picture(noisyLake(), { redact: ["3.seed"] });
    const [status, why, seed] = await verdict(await withReceipt(hidden, { seeds: { "4.seed": "8" } }));
    assert.deepEqual([status, /^redacted: /.test(why!)], ["different", true]);
    assert.equal(seed, 'receipt: The receipt has the seed 4.seed as "8", the graph in the file as "7".');
  });

  it("is unverifiable without a receipt, with a broken one, without a graph", async () => {
    const file = await picture();
    const none = ["unverifiable", "prompt: The picture cannot be verified: the file has no receipt."];
    assert.deepEqual(await verdict(await withTexts(file, () => ({ latentkit: undefined }))), none);
    assert.match(
      (await verdict(await withTexts(file, () => ({ latentkit: "{}" }))))[1]!,
      /receipt in the file is damaged/,
    );
    assert.match((await verdict(await withTexts(file, () => ({ prompt: undefined }))))[1]!, /has no graph/);
    await refuses(verifyImage(Buffer.from("no picture")), "picture.invalid");
  });

  it("finds a graph or a receipt that is in the file twice", async () => {
    const file = await picture(saved());
    const { text, data, ...sides } = await decodePng(file);
    const other = [["prompt", JSON.stringify(noisyLake(1))] as const, ["latentkit", "{}"] as const];
    for (const extra of other) {
      const texts = [extra, ...Object.entries(text)];
      const twice = await encodePng({ ...sides, data: data as Uint8Array }, { text: texts });
      const [status, why] = await verdict(twice);
      assert.deepEqual([status, why], ["different", `prompt: The file has the text "${extra[0]}" more than once.`]);
    }
  });

  it("verifies redacted pictures if the hidden values do not matter", async () => {
    assert.deepEqual(await verdict(await picture(noisyLake(), { redact: ["filename_prefix"] })), ["verified"]);
    for (const key of ["3.seed", "positive", "2", "class_type"]) {
      const [status, why] = await verdict(await picture(noisyLake(), { redact: [key] }));
      if (key === "positive") assert.equal(status, "verified", "the preview host's noise does not hang on the prompt");
      else assert.equal(status, "unverifiable", `${key}: ${why}`);
    }
    const [, why] = await verdict(await picture(noisyLake(), { redact: ["3.seed"] }));
    assert.match(why!, /^redacted: The picture cannot be verified: the file hides values of the graph \(3\.seed\)/);
  });

  it("runs nodes of other names through aliases", async () => {
    const graph = saved();
    graph["2"].class_type = "easy saveImageLazy";
    const file = await picture(graph, { classAliases: { "easy ": "ext " } });
    assert.match((await verdict(file))[1]!, /expected a known class_type, received "easy saveImageLazy"/);
    assert.deepEqual(await verdict(file, { classAliases: { "easy ": "ext " } }), ["verified"]);
  });

  it("verifies a picture that nodes before it save too, and saves none", async () => {
    const graph = { ...saved(), "3": node("PreviewImage", { images: ["2", 0] }) };
    assert.deepEqual(await verdict(await picture(graph, { targets: ["3"] })), ["verified"]);
  });

  describe("of a hostile file", () => {
    const text = (more: object = {}) =>
      node("ext saveTextLazy", {
        text: "x",
        output_file_path: "t",
        file_name: "n",
        file_extension: "txt",
        overwrite: true,
        ...more,
      });
    const refused = async (graph: object, nodeId: string, why: RegExp) => {
      const [status, message] = await verdict(await forged(graph, nodeId));
      assert.equal(status, "unverifiable");
      assert.match(message!, why);
    };

    it("writes texts to a temporary folder only", async () => {
      const [load, save] = [saved()["1"], saved()["2"]];
      await refused({ "1": load, "2": save, "3": text() }, "3", /Node 3 \(ext saveTextLazy\) saves no images/);
      const through = (more: object) => ({
        "1": load,
        "3": text({ image: ["1", 0], ...more }),
        "4": node("SaveImage", { images: ["3", 1], filename_prefix: "x" }),
      });
      assert.deepEqual(await verdict(await forged(through({}), "4")), ["verified"]);
      const escaped = `${basename(folder())}-escaped`;
      const [status, , why] = await verdict(await forged(through({ output_file_path: `../${escaped}` }), "4"));
      assert.notEqual(status, "verified", why);
      assert.deepEqual(readdirSync(temporary()), []);
      for (const path of [join(folder(), "out/t"), join(temporary(), escaped), escaped])
        assert.ok(!existsSync(path), path);
    });

    it("renders no graph that reaches the network", async () => {
      const inputs = { positive: "x", negative: "", model: "sd3", aspect_ratio: "1:1", seed: 0, denoise: 1 };
      const save = node("SaveImage", { images: ["1", 0], filename_prefix: "x" });
      await refused(
        { "1": node("ext remoteImageApi", inputs), "2": save },
        "2",
        /Node 1 \(ext remoteImageApi\) reaches the network/,
      );
    });

    it("refuses a path out of a folder and a missing node", async () => {
      const [, message] = await verdict(await forged(saved("../lake.png"), "2"));
      assert.match(message!, /inside the input folder/);
      await refused(saved(), "9", /names node "9", which the graph does not have/);
      await refused(saved(), "__proto__", /names node "__proto__"/);
      const outside = mkdtempSync(join(tmpdir(), "latentkit-test-"));
      rmSync(outside, { recursive: true });
      const [, prefix] = await verdict(
        await forged(
          { ...saved(), "2": node("SaveImage", { images: ["1", 0], filename_prefix: join(outside, "x") }) },
          "2",
        ),
      );
      assert.match(prefix!, /filename_prefix/);
      assert.ok(!existsSync(outside));
    });

    it("uses no nodes but the package's", async () => {
      const evil = defineNode({
        key: "evil",
        inputs: { images: image() },
        outputs: { out: "IMAGE" },
        run: ({ images }) => [images],
      });
      const graph = {
        ...saved(),
        "2": node("SaveImage", { images: ["3", 0], filename_prefix: "x" }),
        "3": node("evil", { images: ["1", 0] }),
      };
      const file = await picture(graph, { registry: createRegistry([evil], registry) });
      assert.match((await verdict(file))[1]!, /Node 3: expected a known class_type, received "evil"/);
    });

    it("refuses texts that are not a graph", async () => {
      for (const prompt of ["[]", "{", '{"1": {}}', '{"__proto__": {}}', `{"1": ${"[".repeat(100_000)}`]) {
        const file = await withTexts(await picture(saved()), () => ({ prompt }));
        const [status] = await verdict(await withReceipt(file, { graph: textHash(prompt) }));
        assert.equal(status, "unverifiable", prompt.slice(0, 40));
      }
    });

    it("tells of a bounded number of a receipt's entries, in linear time", async () => {
      const file = await picture();
      const hash = `sha256:${"0a".repeat(32)}`;
      const many = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, i) => [`none-${i}.png`, hash]));
      const redacted = (count: number) => ({ inputs: many(count), redacted: Object.keys(many(count)) });
      await growsLinearly(625, (count) => withReceipt(file, redacted(count)), verdict);
      const [status, why] = await verdict(await withReceipt(file, { inputs: many(100_000) }));
      assert.deepEqual(
        [status, /damaged, of another format, or longer than 4194304 characters/.test(why!)],
        ["unverifiable", true],
      );
      assert.equal((await verdict(await withReceipt(file, { inputs: many(10_001) })))[0], "unverifiable");
      const most = await verdict(await withReceipt(file, redacted(10_000)));
      assert.deepEqual([most[0], most.length], ["different", 22]);
      assert.equal(most.at(-1), "input: 9981 more input files were not checked.");
      const seeds = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`${i}.seed`, "1"]));
      const told = await verdict(await withReceipt(file, { seeds }));
      assert.deepEqual([told.length, told.at(-1)], [102, "receipt: There are 9900 more differences."]);
    });

    it("ends when it is interrupted", async () => {
      const file = await picture(saved());
      const signal = AbortSignal.abort();
      await rejectsAs(signal, verifyImage(file, { inputDir, signal }));
    });
  });
});
