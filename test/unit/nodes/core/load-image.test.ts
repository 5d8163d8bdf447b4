import assert from "node:assert/strict";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { encodePng, invokeNode, Tensor } from "latentkit";
import { PNG } from "pngjs";
import { registry } from "#src/nodes/index.js";
import { assertSameBits } from "../../../helpers/bits.js";
import { refuses } from "../../../helpers/errors.js";
import { freshFolder } from "../../../helpers/folders.js";

describe("LoadImage and LoadImageMask", () => {
  const folder = freshFolder();
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

  it("gives one channel as mask, alpha turned round", async () => {
    await write("rgba.png", 4, [255, 0, 51, 0]);
    const values = [];
    for (const channel of ["red", "green", "blue", "alpha"]) values.push((await load("rgba.png", channel))[0]!.data[0]);
    assert.deepEqual(values, [1, 0, Math.fround(0.2), 1]);
    await write("grey.png", 1, [51]);
    for (const channel of ["red", "blue"])
      assert.equal((await load("grey.png", channel))[0]!.data[0], Math.fround(0.2));
    assertSameBits((await load("grey.png", "alpha"))[0], Tensor.zeros([1, 1, 1]));
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
    const names = [
      "../secret.png",
      "..",
      "a/../../secret.png",
      "..\\secret.png",
      "C:\\x.png",
      "link.png",
      "",
      ".",
      "\0",
    ];
    for (const image of [...names, join(folder(), "secret.png")]) {
      await refuses(invokeNode("LoadImage", { image }, { inputDir: root }), "path.outside", /LoadImage/);
    }
  });

  it("names what is missing, and suggests", async () => {
    await write("portrait.png", 1, [255]);
    await refuses(load("portrat.png"), "file.not-found", /Did you mean "portrait.png"\?/);
    await refuses(load("portrait.png/x.png"), "file.not-found");
    await refuses(load("no/such/file.png"), "file.not-found");
    mkdirSync(join(folder(), "directory"));
    await refuses(load("directory"), "file.read-failed");
    rmSync(folder(), { recursive: true });
    await refuses(load("portrait.png"), "file.not-found");
  });

  it("refuses files that are no PNG, and inputs of the wrong type", async () => {
    writeFileSync(join(folder(), "text.png"), "no picture");
    await refuses(load("text.png"), "png.invalid");
    await refuses(load(undefined), "input.missing", /input "image"/);
    await refuses(load(["text.png"]), "input.wrong-type", /input "image"/);
    await refuses(load("text.png", "hue"), "input.not-in-list", /alpha, red, green or blue/);
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
