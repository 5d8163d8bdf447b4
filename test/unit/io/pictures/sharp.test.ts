import assert from "node:assert/strict";
import sharp from "sharp";
import { decodePicture, pictureTexts } from "#src/io/pictures/decode.js";
import { exifTexts, writeExif } from "#src/io/pictures/exif.js";
import { encodeBySharp } from "#src/io/pictures/sharp.js";
import { refuses } from "../../../helpers/errors.js";

const TYPES = ["webp", "jpeg", "avif"] as const;

const image = (channels: number, width = 33, height = 17) => {
  const data = Uint8Array.from({ length: width * height * channels }, (_, i) => (i * i * 31 + (i >> 3)) & 255);
  return { data, width, height, channels };
};

const TEXTS = [
  ["prompt", '{"1": {"class_type": "SaveImage", "inputs": {"seed": 18446744073709551615}}}'],
  ["workflow", '{"nodes": [], "links": []}'],
  ["other", "[1, 2]"],
  ["parameters", "a fox, 狐\nSteps: 20, Seed: 7"],
  ["latentkit", '{"version": 1}'],
] as const;

describe("io/pictures/encode", () => {
  it("writes texts that both readers find, in files that sharp reads, of any size, with alpha and without", async () => {
    for (const type of TYPES) {
      for (const lossless of type === "jpeg" ? [false] : [false, true]) {
        for (const channels of [1, 2, 3, 4]) {
          const file = await encodeBySharp(image(channels), type, { lossless }, TEXTS);
          assert.deepEqual(await pictureTexts(file), Object.fromEntries(TEXTS), `${type} ${channels}`);
          const { width, height, exif, hasAlpha } = await sharp(file).metadata();
          assert.deepEqual([width, height, hasAlpha], [33, 17, type !== "jpeg" && channels % 2 === 0]);
          const block = exif!.subarray(exif!.indexOf("MM\0*"));
          assert.deepEqual(exifTexts(block).slice(-1)[0]!.text, TEXTS[3][1]);
        }
      }
    }
  });

  it("writes texts of many segments", async () => {
    const workflow = JSON.stringify({ nodes: Array.from({ length: 9000 }, (_, i) => `node ${i} of a large graph`) });
    const texts = [["prompt", "{}"] as const, ["workflow", workflow] as const, TEXTS[3]];
    assert.ok(workflow.length > 3 * 65_536);
    for (const type of TYPES) {
      const file = await encodeBySharp(image(3), type, {}, texts);
      assert.deepEqual(await pictureTexts(file), Object.fromEntries(texts), type);
      assert.equal((await sharp(file).raw().toBuffer()).length, 33 * 17 * 3);
    }
  });

  it("keeps every pixel where it is lossless, colours under full transparency too", async () => {
    for (const type of ["webp", "avif"] as const) {
      for (const channels of [3, 4]) {
        const source = image(channels);
        for (const texts of [[], TEXTS]) {
          const file = await encodeBySharp(source, type, { lossless: true }, texts);
          assert.deepEqual(Uint8Array.from((await decodePicture(file)).data), source.data, `${type} ${channels}`);
        }
      }
    }
  });

  it("makes larger files of a higher quality", async () => {
    for (const type of TYPES) {
      const sizes = await Promise.all(
        [20, 60, 95].map(async (quality) => (await encodeBySharp(image(3, 128, 128), type, { quality }, [])).length),
      );
      assert.ok(sizes[0]! < sizes[1]! && sizes[1]! < sizes[2]!, `${type}: ${sizes}`);
    }
  });

  it("lays tags out as ComfyUI does: prompt as Model, the others from Make on downwards, in order of the tags", () => {
    const block = writeExif(TEXTS);
    const tags = exifTexts(block).map(({ tag, text }) => [tag, text.split(":", 1)[0]]);
    assert.deepEqual(tags.slice(0, 4), [
      [0x010d, "latentkit"],
      [0x010e, "other"],
      [0x010f, "workflow"],
      [0x0110, "prompt"],
    ]);
    assert.equal(tags[4]![0], 0x9286);
    assert.deepEqual(exifTexts(writeExif([])), []);
  });

  it("refuses sides that the format cannot hold", async () => {
    const wide = { data: new Uint8Array(3 * 16384), width: 16384, height: 1, channels: 3 };
    await refuses(
      encodeBySharp(wide, "webp", {}, []),
      "picture.too-large",
      /^Picture: expected sides of at most 16383 pixels for webp, received 16384 x 1\.$/,
    );
  });
});
