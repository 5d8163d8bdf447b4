import assert from "node:assert/strict";
import { encodePng } from "latentkit";
import sharp from "sharp";
import { decodePicture } from "#src/io/pictures/decode.js";
import { refuses } from "../../../helpers/errors.js";
import { tiffFile } from "../../../helpers/pictures/tiff.js";

const SIZE = { width: 3, height: 2, channels: 3 } as const;
const PIXELS = Uint8Array.from({ length: 18 }, (_, i) => (i * 53) % 256);
const raw = () => sharp(PIXELS, { raw: SIZE });

const samples = (count: number, factor: number) => Uint16Array.from({ length: count }, (_, i) => i * factor);

/** An animation of three frames 4 x 2, the second one transparent. */
const animation = () => {
  const frames = [0, 1, 2].map((i) => Buffer.from(new Array(8).fill([i * 100, 0, 255, i === 1 ? 0 : 255]).flat()));
  return sharp(Buffer.concat(frames), { raw: { width: 4, height: 6, channels: 4, pageHeight: 2 } });
};

describe("io/pictures/decode", () => {
  it("reads the pixels of lossless files as PNG files give them", async () => {
    const png = await decodePicture(await encodePng({ data: PIXELS, ...SIZE }));
    for (const saved of [raw().webp({ lossless: true }), raw().tiff({ compression: "lzw" })]) {
      const { width, height, channels, bitDepth, frames, data } = await decodePicture(await saved.toBuffer());
      assert.deepEqual([width, height, channels, bitDepth, frames], [3, 2, 3, 8, 1]);
      assert.deepEqual([...data], [...png.data]);
    }
  });

  it("reads JPEG files near to what was saved, grey and CMYK ones as RGB", async () => {
    const even = sharp({ create: { width: 16, height: 16, channels: 3, background: "#8040c0" } });
    const [first, second, third] = (await decodePicture(await even.clone().jpeg().toBuffer())).data;
    for (const [value, expected] of [
      [first, 0x80],
      [second, 0x40],
      [third, 0xc0],
    ] as const) {
      assert.ok(Math.abs(value! - expected) <= 2, `${value} near ${expected}`);
    }
    const grey = await decodePicture(await even.clone().toColourspace("b-w").jpeg().toBuffer());
    assert.equal(grey.channels, 3);
    assert.equal(grey.data[0], grey.data[1]);
    const cmyk = await decodePicture(await even.clone().toColourspace("cmyk").jpeg().toBuffer());
    assert.deepEqual([cmyk.channels, cmyk.data.length], [3, 768]);
  });

  it("turns pictures by each EXIF orientation", async () => {
    for (const orientation of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const file = await raw().webp({ lossless: true }).withMetadata({ orientation }).toBuffer();
      const { width, height, data } = await decodePicture(file);
      assert.deepEqual([width, height], orientation <= 4 ? [3, 2] : [2, 3]);
      // where the first pixel of the file is shown: rows from the top, then from the left
      const corners: readonly (readonly [number, number])[] = [
        [0, 0],
        [0, 2],
        [1, 2],
        [1, 0],
        [0, 0],
        [0, 1],
        [2, 1],
        [2, 0],
      ];
      const [row, column] = corners[orientation - 1]!;
      const at = (row * width + column) * 3;
      assert.deepEqual([orientation, ...data.subarray(at, at + 3)], [orientation, 0, 53, 106]);
    }
  });

  it("converts the colours of a profile to sRGB", async () => {
    const red = sharp({ create: { width: 8, height: 8, channels: 3, background: "#c03020" } });
    const file = await red.clone().withIccProfile("p3").png().toBuffer();
    const stored = await decodePicture(file);
    const wide = await sharp(file).keepIccProfile().jpeg({ quality: 100, chromaSubsampling: "4:4:4" }).toBuffer();
    const { data } = await decodePicture(wide);
    assert.ok(stored.data[0]! < 0xbc, "the file's own samples are those of the wide profile");
    for (const [i, expected] of [0xc0, 0x30, 0x20].entries()) assert.ok(Math.abs(data[i]! - expected) <= 4);
  });

  it("keeps the 16 bits of TIFF files, grey and with alpha too", async () => {
    for (const channels of [1, 2, 3, 4]) {
      const data = samples(6 * channels, 2500);
      const decoded = await decodePicture(tiffFile({ ...SIZE, channels }, data));
      assert.deepEqual([decoded.channels, decoded.bitDepth], [channels, 16]);
      assert.deepEqual([...decoded.data], [...data]);
    }
  });

  it("reads deep AVIF files with white as the largest number", async () => {
    const white = sharp(tiffFile(SIZE, new Uint16Array(18).fill(65535)));
    for (const bitdepth of [10, 12] as const) {
      const { bitDepth, data } = await decodePicture(
        await white.clone().toColourspace("rgb16").avif({ bitdepth, lossless: true }).toBuffer(),
      );
      assert.deepEqual([bitDepth, data[0]], [16, 65535]);
    }
  });

  it("reads animations as frames, as many as asked", async () => {
    for (const file of [await animation().gif().toBuffer(), await animation().webp({ lossless: true }).toBuffer()]) {
      const all = await decodePicture(file);
      assert.deepEqual([all.width, all.height, all.channels, all.frames, all.isKeyed], [4, 2, 4, 3, false]);
      assert.equal(all.data.length, 4 * 2 * 4 * 3);
      const first = [0, 1, 2].map((frame) => [...all.data.subarray(frame * 32, frame * 32 + 4)]);
      assert.deepEqual([first[0], first[1]![3], first[2]], [[0, 0, 255, 255], 0, [200, 0, 255, 255]]);
      const one = await decodePicture(file, 1);
      assert.deepEqual([one.frames, one.height, one.data.length], [1, 2, 32]);
      assert.equal((await decodePicture(file, 99)).frames, 3);
    }
  });

  it("reads the pages of a TIFF as frames", async () => {
    const pages = [samples(18, 100), samples(18, 200)];
    const decoded = await decodePicture(tiffFile(SIZE, ...pages));
    assert.deepEqual([decoded.frames, decoded.height], [2, 2]);
    assert.deepEqual(
      [...decoded.data],
      pages.flatMap((page) => [...page]),
    );
  });

  it("refuses damaged, cut and too large files in one sentence", async () => {
    const jpeg = await sharp({ create: { width: 300, height: 300, channels: 3, background: "red" } })
      .jpeg()
      .toBuffer();
    for (const file of [jpeg.subarray(0, jpeg.length / 2), Buffer.from("GIF89a"), jpeg.subarray(0, 4)]) {
      await refuses(decodePicture(file), "picture.invalid", /^Picture: the \w+ file is damaged [^\n]+\.$/);
    }
    await refuses(
      decodePicture(Buffer.from("BM no picture")),
      "picture.invalid",
      /^Picture: expected the bytes of a PNG, /,
    );
    await refuses(decodePicture([] as never), "picture.invalid");
    // a header alone: 16383 x 16383 pixels
    const huge = Buffer.from(
      "52494646160000005745425056503820 0a000000 30 00 00 9d012a ff3f ff3f".replaceAll(" ", ""),
      "hex",
    );
    await refuses(decodePicture(huge), "picture.too-large", /^Picture: expected at most 134217728 pixels/);
  });
});
