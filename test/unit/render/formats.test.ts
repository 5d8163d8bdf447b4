import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { decodePng, encodePng, type RenderOptions, render } from "latentkit";
import sharp from "sharp";
import { pictureTexts } from "#src/io/pictures/decode.js";
import { readReceipt } from "#src/render/receipt/receipt.js";
import { verifyImage } from "#src/render/verify/verify.js";
import { refuses } from "../../helpers/errors.js";
import { filesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { node } from "../../helpers/graph/graph-nodes.js";

const inputDir = join(root, "test/graphs/input");
const graph = {
  "1": node("LoadImage", { image: "lake.png" }),
  "2": node("SaveImage", { images: ["1", 0], filename_prefix: "a" }),
  "3": node("ext saveImageLazy", { images: ["1", 0], filename_prefix: "b", save_metadata: true }),
  "4": node("PreviewImage", { images: ["1", 0] }),
  "5": node("ext saveTextLazy", {
    text: "x",
    output_file_path: ".",
    file_name: "c",
    file_extension: "txt",
    overwrite: true,
    image: ["1", 0],
  }),
};

describe("formats of saved pictures", () => {
  const folder = temporaryFolder();
  const saved = async (options: RenderOptions, from: object = graph) => {
    const result = await render(from, { outputDir: folder(), inputDir, ...options });
    assert.equal(result.status, "success", result.error?.message);
    return result.files.map(({ path }) => path).filter((path) => extname(path) !== ".txt");
  };

  it("saves each node's pictures in each format, with the same texts", async () => {
    const extraPnginfo = { workflow: { nodes: [], links: [] } };
    const targets = ["2", "3", "4", "5"];
    for (const type of ["png", "webp", "jpeg", "avif"] as const) {
      const paths = await saved({ format: { type }, extraPnginfo, targets });
      const extension = type === "jpeg" ? ".jpg" : `.${type}`;
      assert.deepEqual(
        paths.map((path) => extname(path)),
        new Array(4).fill(extension),
      );
      for (const path of paths) {
        const file = readFileSync(path);
        assert.equal((await sharp(file).metadata()).format, type === "avif" ? "heif" : type);
        const { prompt, workflow, latentkit } = await pictureTexts(file);
        if (basename(path).startsWith("c")) assert.equal(prompt, undefined);
        else {
          assert.equal(JSON.parse(prompt!)["1"].inputs.image, "lake.png");
          assert.deepEqual(JSON.parse(workflow!), extraPnginfo.workflow);
          assert.notEqual(readReceipt(latentkit!), undefined);
        }
      }
    }
    assert.ok(filesIn(folder()).includes("a_00004_.avif"), "one counter for all formats");
  });

  it("renders the same pixels from each lossless format, and says why it cannot verify the others", async () => {
    const of = async (format: RenderOptions["format"]) => {
      const [path] = await saved({ format, targets: ["2"] });
      const { status, differences } = await verifyImage(readFileSync(path!), { inputDir });
      return [status, ...differences.map(({ message }) => message)];
    };
    for (const format of [
      { bitDepth: 16 },
      { type: "webp", lossless: true },
      { type: "avif", lossless: true },
    ] as const) {
      assert.deepEqual(await of(format), ["verified"], JSON.stringify(format));
    }
    const why = (reason: string) =>
      `The picture cannot be verified: ${reason}; save PNG files, or WebP or AVIF files with \`lossless\`.`;
    assert.deepEqual(await of({ type: "jpeg" }), ["unverifiable", why("a JPEG file is lossy")]);
    const webp = why("a WebP file saved without `lossless` is lossy");
    assert.deepEqual(await of({ type: "webp", quality: 50 }), ["unverifiable", webp]);
    const avif = why("this AVIF file is lossy");
    assert.deepEqual(await of({ type: "avif", quality: 50 }), ["unverifiable", avif]);
  });

  it("finds an edited lossless picture", async () => {
    const [path] = await saved({ format: { type: "webp", lossless: true }, targets: ["2"] });
    const file = readFileSync(path!);
    const edited = await sharp(file).negate().webp({ lossless: true }).keepExif().toBuffer();
    const { status, differences } = await verifyImage(edited, { inputDir });
    assert.deepEqual([status, differences[0]!.what], ["different", "pixels"]);
    const deep = await saved({ format: { bitDepth: 16 }, targets: ["2"] });
    const { text, ...image } = await decodePng(readFileSync(deep[0]!));
    image.data[0]! ^= 1;
    const other = await verifyImage(await encodePng(image, { text }), { inputDir });
    assert.deepEqual([other.status, other.differences[0]!.what], ["different", "pixels"]);
  });

  it("keeps 16 bits from a file to a file", async () => {
    const samples = Uint16Array.from({ length: 300 }, (_, i) => (i * 7919) % 65536);
    writeFileSync(join(folder(), "deep.png"), await encodePng({ data: samples, width: 10, height: 10, channels: 3 }));
    const from = {
      "1": node("LoadImage", { image: "deep.png" }),
      "2": node("SaveImage", { images: ["1", 0], filename_prefix: "again" }),
    };
    const [path] = await saved({ inputDir: folder(), format: { bitDepth: 16 } }, from);
    assert.deepEqual((await decodePng(readFileSync(path!))).data, samples);
  });

  it("adds the line of A1111 where it is asked for, and never to pictures without metadata", async () => {
    const from = {
      "1": node("CheckpointLoaderSimple", { ckpt_name: "preview-sd15.safetensors" }),
      "2": node("CLIPTextEncode", { text: "a fox, 狐", clip: ["1", 1] }),
      "3": node("CLIPTextEncode", { text: "blur", clip: ["1", 1] }),
      "4": node("EmptyLatentImage", { width: 64, height: 48, batch_size: 1 }),
      "5": node("KSampler", {
        seed: "18446744073709551615",
        steps: 2,
        cfg: 7.5,
        sampler_name: "euler_ancestral",
        scheduler: "karras",
        denoise: 1,
        model: ["1", 0],
        positive: ["2", 0],
        negative: ["3", 0],
        latent_image: ["4", 0],
      }),
      "6": node("VAEDecode", { samples: ["5", 0], vae: ["1", 2] }),
      "7": node("SaveImage", { images: ["6", 0], filename_prefix: "line" }),
    };
    const line =
      "a fox, 狐\nNegative prompt: blur\nSteps: 2, Sampler: Euler a, Schedule type: Karras, CFG scale: 7.5, " +
      "Seed: 18446744073709551615, Size: 64x48, Model: preview-sd15, Version: latentkit ";
    for (const type of ["png", "webp", "jpeg", "avif"] as const) {
      const [path] = await saved({ format: { type }, parameters: true }, from);
      const { parameters } = await pictureTexts(readFileSync(path!));
      assert.ok(parameters!.startsWith(line), parameters);
    }
    const [plain] = await saved({}, from);
    assert.equal((await pictureTexts(readFileSync(plain!))).parameters, undefined);
    const [none] = await saved({ parameters: true, metadata: "none" }, from);
    assert.deepEqual(await pictureTexts(readFileSync(none!)), {});
    const [hidden] = await saved({ parameters: true, redact: ["2.text"] }, from);
    const { parameters } = await pictureTexts(readFileSync(hidden!));
    assert.ok(parameters!.startsWith("[redacted]\nNegative prompt: blur\n"), parameters);
  });

  it("refuses a wrong format, and one that needs sharp where it is missing, before anything is written", async () => {
    await refuses(
      render(graph, { format: { type: "jpeg", lossless: true } }),
      "usage.invalid",
      /^format: expected a picture format: /,
    );
    writeFileSync(join(folder(), "hide.cjs"), HIDE_SHARP);
    const program = `import { render } from "latentkit";
      await render(${JSON.stringify(graph)}, {
        inputDir: ${JSON.stringify(inputDir)}, outputDir: ${JSON.stringify(join(folder(), "none"))}, format: { type: "webp" },
      }).catch((error) => console.log(error.code, error.message));`;
    const args = ["--require", join(folder(), "hide.cjs"), "--input-type=module", "--eval", program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", cwd: root });
    const message =
      'Writing webp files needs the optional package sharp, which could not be loaded: run "npm install sharp".';
    assert.equal(stdout, `picture.needs-sharp ${message}\n`, stderr);
    assert.deepEqual(filesIn(folder()), ["hide.cjs"]);
  });
});

/** Hides sharp from a process, as if it were not installed. */
const HIDE_SHARP = `const Module = require("node:module");
  const load = Module._load;
  Module._load = (name, ...rest) => {
    if (name === "sharp") throw new Error("Cannot find module");
    return load.call(Module, name, ...rest);
  };`;
