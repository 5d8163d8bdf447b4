import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { encodePng, executeGraph, invokeNode, type Latent, randn, registry, Tensor, validateGraph } from "latentkit";
import { PNG } from "pngjs";
import sharp from "sharp";
import { writeSafetensors } from "#src/io/safetensors.js";
import { refuses } from "../../../helpers/errors.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { makeApng } from "../../../helpers/png/apng-file.js";
import { skip } from "../../../helpers/skip.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

describe("LoadImage and LoadImageMask", () => {
  /** Hides sharp from a process, as if it were not installed. */
  const HIDE_SHARP = `const Module = require("node:module");
  const load = Module._load;
  Module._load = (name, ...rest) => {
    if (name === "sharp") throw new Error("Cannot find module");
    return load.call(Module, name, ...rest);
  };`;

  const folder = temporaryFolder();
  const write = async (name: string, channels: number, data: number[]): Promise<void> => {
    const path = join(folder(), name);
    mkdirSync(dirname(path), { recursive: true });
    const width = data.length / channels;
    writeFileSync(path, await encodePng({ data: Uint8Array.from(data), width, height: 1, channels }));
  };
  const load = async (image: unknown, channel?: string): Promise<Tensor[]> => {
    const node = channel === undefined ? "LoadImage" : "LoadImageMask";
    const inputs = channel === undefined ? { image } : { image, channel };
    return (await invokeNode(node, inputs, { inputDir: folder() })).result as Tensor[];
  };

  it("gives colours, and what is transparent", async () => {
    await write("rgba.png", 4, [255, 0, 51, 255, 0, 102, 255, 51]);
    const [image, mask] = await load("rgba.png");
    const fifth = (n: number) => Math.fround(Math.fround(n * 51) / 255);
    assertSameBits(image, Tensor.from([1, 0, fifth(1), 0, fifth(2), 1], [1, 1, 2, 3]));
    assertSameBits(mask, Tensor.from([0, 1 - fifth(1)], [1, 1, 2]));
  });

  it("gives grey as RGB, and without alpha an empty mask of the image's size", async () => {
    await write("grey.png", 1, [0, 255, 255]);
    const [image, mask] = await load("grey.png");
    assertSameBits(image, Tensor.from([0, 0, 0, 1, 1, 1, 1, 1, 1], [1, 1, 3, 3]));
    assertSameBits(mask, Tensor.zeros([1, 1, 3]));
    await write("greyalpha.png", 2, [255, 0]);
    const [white, clear] = await load("greyalpha.png");
    assertSameBits(white, Tensor.full([1, 1, 1, 3], 1));
    assertSameBits(clear, Tensor.full([1, 1, 1], 1));
  });

  it("scales 16-bit samples", async () => {
    const samples = Uint16Array.from([0, 257, 32768, 65535]);
    const options = {
      width: 1,
      height: 1,
      bitDepth: 16,
      colorType: 6,
      inputColorType: 6,
      inputHasAlpha: true,
    } as const;
    const png = new PNG(options);
    png.data = Buffer.from(samples.buffer);
    writeFileSync(join(folder(), "deep.png"), PNG.sync.write(png, options));
    const [image, mask] = await load("deep.png");
    assertSameBits(image, Tensor.from(Float32Array.of(0, 257 / 65535, 32768 / 65535), [1, 1, 1, 3]));
    assertSameBits(mask, Tensor.zeros([1, 1, 1]));
  });

  it("reads subfolders and the host's own notation", async () => {
    await write("sub/one.png", 1, [255]);
    for (const name of ["sub/one.png", "./sub/../sub/one.png", "sub/one.png [input]"]) {
      assert.deepEqual((await load(name))[0]!.shape, [1, 1, 1, 3]);
    }
  });

  it("refuses names that leave the input folder, on any system", async () => {
    await write("inside/one.png", 1, [255]);
    const root = join(folder(), "inside");
    await write("secret.png", 1, [255]);
    symlinkSync(join(folder(), "secret.png"), join(root, "link.png"));
    const names = ["../secret.png", "..", "a/../../secret.png", "..\\secret.png", "C:\\x.png", "link.png", "\0"];
    for (const image of [...names, join(folder(), "secret.png")]) {
      await refuses(invokeNode("LoadImage", { image }, { inputDir: root }), "path.outside", /LoadImage/);
    }
  });

  it("says that a name is empty, or means the input folder itself", async () => {
    for (const [node, input] of [
      ["LoadImage", "image"],
      ["LoadImageMask", "image"],
      ["LoadLatent", "latent"],
    ] as const) {
      for (const name of ["", "  ", " [input]"]) {
        const inputs = node === "LoadImageMask" ? { image: name, channel: "red" } : { [input]: name };
        const received = "expected a file name, received an empty text";
        const sentence = new RegExp(`^${node}, input "${input}": ${received.replaceAll("[", "\\[")}\\.$`);
        await refuses(invokeNode(node, inputs, { inputDir: folder() }), "input.invalid", sentence);
      }
    }
    for (const name of [".", "a/.."]) await refuses(load(name), "file.read-failed", /, which is a folder\.$/);
  });

  it("names what is missing, and suggests", async () => {
    await write("portrait.png", 1, [255]);
    await refuses(load("portrat.png"), "file.not-found", /Did you mean "portrait.png"\?$/);
    await refuses(load("portrait.png/x.png"), "file.not-found");
    await refuses(load("no/such/file.png"), "file.not-found");
    mkdirSync(join(folder(), "directory"));
    await refuses(load("directory"), "file.read-failed", /"directory", which is a folder\.$/);
    rmSync(folder(), { recursive: true });
    await refuses(load("portrait.png"), "file.not-found");
  });

  it("refuses files that are not a picture, and inputs of the wrong type", async () => {
    writeFileSync(join(folder(), "text.png"), "no picture");
    await refuses(load("text.png"), "picture.invalid");
    await refuses(load(undefined), "input.missing", /input "image"/);
    await refuses(load(["text.png"]), "input.wrong-type", /input "image"/);
    await refuses(load("text.png", "hue"), "input.not-in-list", /alpha, red, green or blue/);
  });

  const sentence = (name: string, reason: string) =>
    `Node 1 (LoadImage), input "image": expected a PNG, JPEG, WebP, AVIF, GIF, TIFF or BMP file, received "${name}", which is ${reason}.`;
  const validated = (image: unknown, options: { inputDir?: string } = {}) =>
    validateGraph(
      {
        "1": { class_type: "LoadImage", inputs: { image } },
        "2": { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
      },
      { inputDir: folder(), ...options },
    );
  const errorOf = (image: unknown) => validated(image).nodeErrors["1"]?.errors[0];

  it("names the format of a file that is not read, before and while it runs", async () => {
    const heads: [string, string, string][] = [
      ["a.png", "a HEIC", "\0\0\0\x18ftypheic"],
      ["a.psd", "a PSD", "8BPS"],
      ["a.txt", "not a picture", "hello"],
      ["short.png", "not a picture", "\x89PNG"],
      ["empty.png", "empty", ""],
    ];
    for (const [name, reason, head] of heads) {
      writeFileSync(join(folder(), name), Buffer.from(head, "latin1"));
      const error = errorOf(name)!;
      assert.equal(error.sentence, sentence(name, reason));
      assert.equal(error.type, "custom_validation_failed");
      assert.equal(
        error.details,
        `image - expected a PNG, JPEG, WebP, AVIF, GIF, TIFF or BMP file, received "${name}", which is ${reason}.`,
      );
      assert.deepEqual([error.code, error.input, error.received], ["picture.invalid", "image", JSON.stringify(name)]);
      const ran = executeGraph(
        {
          "1": { class_type: "LoadImage", inputs: { image: ["3", 0] } },
          "2": { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
          "3": { class_type: "ext if", inputs: { any: 1, if: name, else: "" } },
        },
        { inputDir: folder(), outputDir: folder() },
      );
      const messages = [];
      for await (const event of ran) if (event.type === "node-error") messages.push(event.error.message);
      assert.deepEqual(messages, [sentence(name, reason)]);
    }
  });

  it("is validated as it runs: missing, outside, a folder; a linked name waits", async () => {
    await write("portrait.png", 1, [255]);
    assert.equal(validated("portrait.png").ok, true);
    assert.equal(validated("portrait.png [input]").ok, true);
    assert.equal(
      errorOf("portrat.png")?.sentence,
      'Node 1 (LoadImage), input "image": expected a file in the input folder, received "portrat.png", which does not exist. Did you mean "portrait.png"?',
    );
    assert.equal(errorOf("portrat.png")?.suggestion, "portrait.png");
    assert.equal(errorOf("../portrait.png")?.code, "path.outside");
    mkdirSync(join(folder(), "directory"));
    assert.match(errorOf("directory")!.sentence, /expected a file, received "directory", which is a folder\.$/);
    const mask = { class_type: "LoadImageMask", inputs: { image: "no.png", channel: "red" } };
    const shown = { class_type: "ext showAnythingLazy", inputs: { anything: ["1", 0] } };
    assert.match(
      validateGraph({ "1": mask, "2": shown }, { inputDir: folder() }).nodeErrors["1"]!.errors[0]!.sentence,
      /^Node 1 \(LoadImageMask\), input "image"/,
    );
    const linked = { class_type: "LoadImage", inputs: { image: ["2", 0] } };
    const name = { class_type: "ext if", inputs: { any: 1, if: "no.png", else: "" } };
    const save = { class_type: "PreviewImage", inputs: { images: ["1", 0] } };
    assert.equal(validateGraph({ "1": linked, "2": name, "3": save }, { inputDir: folder() }).ok, true);
  });

  it("does not wait for a pipe, nor read a device", function () {
    const pipe = join(folder(), "pipe.png");
    if (spawnSync("mkfifo", [pipe]).status !== 0) skip(this, "mkfifo makes no pipe here");
    symlinkSync("/dev/zero", join(folder(), "zero.png"));
    assert.match(errorOf("pipe.png")!.sentence, /expected a file, received "pipe.png", which is a pipe or device\.$/);
    assert.equal(errorOf("zero.png")?.code, "path.outside");
  });

  it("looks for a limited number of names in a graph of many wrong ones", async () => {
    await write("portrait.png", 1, [255]);
    const nodes = Array.from({ length: 300 }, (_, i) => [
      [`a${i}`, { class_type: "LoadImage", inputs: { image: "portrat.png" } }],
      [`b${i}`, { class_type: "PreviewImage", inputs: { images: [`a${i}`, 0] } }],
    ]).flat();
    const { nodeErrors } = validateGraph(Object.fromEntries(nodes), { inputDir: folder() });
    const errors = Object.values(nodeErrors).flatMap((node) => node.errors);
    assert.deepEqual([errors.length, errors.filter((error) => error.suggestion !== undefined).length], [300, 200]);
  });

  it("names node, input and file if a PNG is damaged", async () => {
    await write("whole.png", 3, [1, 2, 3, 4, 5, 6]);
    writeFileSync(join(folder(), "half.png"), readFileSync(join(folder(), "whole.png")).subarray(0, 50));
    assert.equal(validated("half.png").ok, true);
    const error = await refuses(load("half.png"), "png.invalid");
    assert.match(
      error.message,
      /^LoadImage, input "image": expected a readable picture, received "half.png". PNG: [^:]+\.$/,
    );
  });

  it("reads other formats by their content, under any name", async () => {
    const picture = sharp(Buffer.from([255, 0, 51, 255, 0, 102, 255, 51]), {
      raw: { width: 2, height: 1, channels: 4 },
    });
    writeFileSync(join(folder(), "photo.jpg"), await picture.clone().webp({ lossless: true, exact: true }).toBuffer());
    assert.equal(validated("photo.jpg").ok, true);
    const [image, mask] = await load("photo.jpg");
    const fifth = (n: number) => Math.fround(Math.fround(n * 51) / 255);
    assertSameBits(image, Tensor.from([1, 0, fifth(1), 0, fifth(2), 1], [1, 1, 2, 3]));
    assertSameBits(mask, Tensor.from([0, 1 - fifth(1)], [1, 1, 2]));
    const hash = await registry.get("LoadImage")?.isChanged?.({ image: "photo.jpg" }, { inputDir: folder() });
    assert.match(String(hash), /^[0-9a-f]{64} sharp \d+\.\d+\.\d+ libvips \d/);
  });

  it("reads an animation as a batch of images and masks, and its first frame as a mask", async () => {
    const frames = [0, 255].map((alpha) => Buffer.from([255, 255, 0, 255, 0, 0, 0, alpha]));
    const options = { raw: { width: 2, height: 2, channels: 4, pageHeight: 1 } } as const;
    writeFileSync(
      join(folder(), "moving"),
      await sharp(Buffer.concat(frames), options).webp({ lossless: true }).toBuffer(),
    );
    const [images, masks] = await load("moving");
    assert.deepEqual(
      [images!.shape, masks!.shape],
      [
        [2, 1, 2, 3],
        [2, 1, 2],
      ],
    );
    assert.deepEqual([...masks!.data], [0, 1, 0, 0]);
    assertSameBits((await load("moving", "alpha"))[0], Tensor.from([0, 1], [1, 1, 2]));
  });

  it("says in one sentence that sharp is missing, before it runs", () => {
    writeFileSync(join(folder(), "hide.cjs"), HIDE_SHARP);
    writeFileSync(join(folder(), "photo.png"), Buffer.from("\xff\xd8\xff\xe0\0\x10JFIF", "latin1"));
    const program = `import { validateGraph } from "latentkit";
      const graph = {
        1: { class_type: "LoadImage", inputs: { image: "photo.png" } },
        2: { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
      };
      const [error] = validateGraph(graph, { inputDir: ${JSON.stringify(folder())} }).nodeErrors["1"].errors;
      console.log(error.code, error.sentence);`;
    const args = ["--require", join(folder(), "hide.cjs"), "--input-type=module", "--eval", program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(
      stdout,
      'picture.needs-sharp Node 1 (LoadImage), input "image": reading a JPEG file needs the optional package sharp, which could not be loaded: run "npm install sharp".\n',
      stderr,
    );
  });

  it("counts as changed when the file's bytes do", async () => {
    for (const key of ["LoadImage", "LoadImageMask"]) {
      const hash = () => registry.get(key)?.isChanged?.({ image: "a.png" }, { inputDir: folder() });
      await write("a.png", 1, [1]);
      const first = await hash();
      assert.match(String(first), /^[0-9a-f]{64}$/);
      assert.equal(await hash(), first);
      await write("a.png", 1, [2]);
      assert.notEqual(await hash(), first);
      // a name that comes through a link is not known when this is asked
      assert.ok(Number.isNaN(await registry.get(key)?.isChanged?.({ image: undefined }, { inputDir: folder() })));
    }
  });
});

describe("LoadImageMask", () => {
  const folder = temporaryFolder();
  const load = async (image: string, channel: string): Promise<Tensor> =>
    (await invokeNode("LoadImageMask", { image, channel }, { inputDir: folder() })).result[0] as Tensor;

  it("gives one channel as mask, alpha turned round", async () => {
    const rgba = { data: Uint8Array.of(255, 0, 51, 0), width: 1, height: 1, channels: 4 };
    writeFileSync(join(folder(), "rgba.png"), await encodePng(rgba));
    const values = [];
    for (const channel of ["red", "green", "blue", "alpha"]) values.push((await load("rgba.png", channel)).data[0]);
    assert.deepEqual(values, [1, 0, Math.fround(0.2), 1]);
    const grey = { data: Uint8Array.of(51), width: 1, height: 1, channels: 1 };
    writeFileSync(join(folder(), "grey.png"), await encodePng(grey));
    for (const channel of ["red", "blue"]) assert.equal((await load("grey.png", channel)).data[0], Math.fround(0.2));
    assertSameBits(await load("grey.png", "alpha"), Tensor.zeros([1, 1, 1]));
  });

  it("reads the first frame of an animation, and one transparent colour as alpha", async () => {
    const frames = [0, 255].map((value) => ({ control: {}, bytes: [value, value] }));
    writeFileSync(join(folder(), "a.png"), makeApng({ width: 2, height: 1, colour: 0, transparency: [0, 0], frames }));
    assertSameBits(await load("a.png", "red"), Tensor.zeros([1, 1, 2]));
    assertSameBits(await load("a.png", "alpha"), Tensor.full([1, 1, 2], 1));
  });
});

describe("LoadLatent", () => {
  const folder = temporaryFolder();
  const samples = randn([2, 4, 3, 5], { seed: 3 });
  const write = (name: string, tensors: Record<string, Tensor>) =>
    writeFileSync(join(folder(), name), writeSafetensors(tensors));
  const load = async (latent: string) =>
    ((await invokeNode("LoadLatent", { latent }, { inputDir: folder() })).result[0] as Latent).samples;

  it("reads what SaveLatent has written", async () => {
    const inputs = { samples: { samples }, filename_prefix: "a" };
    await invokeNode("SaveLatent", inputs, { outputDir: folder() });
    assertSameBits(await load("a_00001_.latent"), samples);
  });

  it("reads one frame as a picture, and leaves several as they are", async () => {
    for (const [frames, shape] of [
      [1, [2, 4, 3, 5]],
      [2, [1, 4, 2, 3, 5]],
    ] as const) {
      write("frames.latent", { latent_tensor: samples.reshape([2 / frames, 4, frames, 3, 5]) });
      assert.deepEqual((await load("frames.latent")).shape, shape);
    }
  });

  it("scales values of files without a version", async () => {
    write("old.latent", { latent_tensor: Tensor.from([0.18215, -1], [1, 2, 1, 1]) });
    const [first, second] = (await load("old.latent")).data;
    assert.ok(Math.abs(first! - 1) < 1e-6 && Math.abs(second! + 1 / 0.18215) < 1e-6);
  });

  it("counts as changed with the bytes of its file", async () => {
    const hash = () => registry.get("LoadLatent")!.isChanged!({ latent: "a.latent" }, { inputDir: folder() });
    write("a.latent", { latent_tensor: samples });
    const before = await hash();
    assert.equal(await hash(), before);
    write("a.latent", { latent_tensor: Tensor.zeros([2, 4, 3, 5]) });
    assert.notEqual(await hash(), before);
  });

  it("refuses files that hold no latent, and names the input", async () => {
    writeFileSync(join(folder(), "text.latent"), "no safetensors at all");
    write("other.latent", { weight: samples });
    write("flat.latent", { latent_tensor: Tensor.zeros([4]) });
    const sentence = /input "latent": expected a latent that SaveLatent has written, received ".*latent"\. /;
    await refuses(load("text.latent"), "safetensors.invalid", sentence);
    for (const name of ["other.latent", "flat.latent"])
      await refuses(load(name), "safetensors.invalid", sentence, /a tensor "latent_tensor" of 3 to 5 axes/);
  });

  it("refuses names outside the input folder, folders and absent files before it runs", async () => {
    mkdirSync(join(folder(), "sub.latent"));
    write("abc.latent", { latent_tensor: samples });
    await refuses(load("../a.latent"), "path.outside", /input "latent"/);
    await refuses(load("sub.latent"), "file.read-failed", /which is a folder/);
    await refuses(load("abd.latent"), "file.not-found", /Did you mean "abc\.latent"/);
  });
});
