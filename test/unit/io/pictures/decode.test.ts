import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import { encodePng } from "latentkit";
import sharp from "sharp";
import { decodePicture, pictureTexts } from "#src/io/pictures/decode.js";
import { refuses } from "../../../helpers/errors.js";
import {
  ascii,
  deflatedText,
  exifBlock,
  exifSegment,
  jpegWith,
  pngWith,
  userComment,
  utf16,
  webpWith,
} from "../../../helpers/pictures/exif-files.js";
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
      decodePicture(Buffer.from("8BPS no picture")),
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

const PROMPT = '{"3": {"class_type": "KSampler", "inputs": {"seed": 18446744073709551615}}}';
const WORKFLOW = '{"nodes": [], "links": []}';
const PARAMETERS = "a fox, 狐\nNegative prompt: blur\nSteps: 20, Sampler: Euler a, Seed: 7";

const PILLOW = [
  ascii(0x010e, 'extra:{"a": 1}'),
  ascii(0x010f, `workflow:${WORKFLOW}`),
  ascii(0x0110, `prompt:${PROMPT}`),
];

const picture = sharp({ create: { width: 8, height: 8, channels: 3, background: "red" } });

describe("pictureTexts", () => {
  it("reads what ComfyUI writes into a WebP file, in either byte order, with and without JPEG's header", async () => {
    const expected = { extra: '{"a": 1}', workflow: WORKFLOW, prompt: PROMPT };
    for (const order of ["big", "little"] as const) {
      const block = exifBlock(PILLOW, order);
      assert.deepEqual(await pictureTexts(webpWith(block)), expected);
      assert.deepEqual(await pictureTexts(webpWith(exifSegment(block)[1])), expected);
      assert.deepEqual(await pictureTexts(jpegWith([0xe0, Buffer.from("JFIF\0")], exifSegment(block))), expected);
      assert.deepEqual(await pictureTexts(block), expected);
    }
  });

  it("reads keys of any case, and spaces after the colon", async () => {
    const block = exifBlock([ascii(0x010e, `Workflow: ${WORKFLOW}`), ascii(0x010f, `Prompt:${PROMPT}`)]);
    assert.deepEqual(await pictureTexts(jpegWith(exifSegment(block))), { workflow: WORKFLOW, prompt: PROMPT });
  });

  it("reads user comments of every encoding as parameters, and graphs in them as graphs", async () => {
    const commented = (code: string, text: Buffer, order?: "big" | "little") =>
      pictureTexts(jpegWith(exifSegment(exifBlock([userComment(code, text)], order))));
    for (const order of ["big", "little"] as const) {
      for (const block of ["big", "little"] as const) {
        assert.deepEqual(await commented("UNICODE", utf16(PARAMETERS, order), block), { parameters: PARAMETERS });
      }
      const marked = utf16(`\ufeff狐狐狐${PARAMETERS}`, order);
      assert.deepEqual(await commented("UNICODE", marked), { parameters: `狐狐狐${PARAMETERS}` });
    }
    assert.deepEqual(await commented("ASCII", Buffer.from(PARAMETERS)), { parameters: PARAMETERS });
    assert.deepEqual(await commented("", Buffer.from(PARAMETERS)), { parameters: PARAMETERS });
    assert.deepEqual(await commented("UNICODE", utf16(PROMPT, "big")), { prompt: PROMPT });
    assert.deepEqual(await commented("ASCII", Buffer.from(WORKFLOW)), { workflow: WORKFLOW });
    assert.deepEqual(await commented("ASCII", Buffer.from('{"steps": 20}')), { parameters: '{"steps": 20}' });
    assert.deepEqual(await commented("JIS", Buffer.from(PARAMETERS)), {});
  });

  it("joins a block that stands in several segments, and leaves out a second block", async () => {
    const long = `{"text": "${"x".repeat(150_000)}"}`;
    const block = exifBlock([ascii(0x0110, `prompt:${long}`)]);
    const parts = [block.subarray(0, 65_000), block.subarray(65_000, 130_000), block.subarray(130_000)];
    const other = exifBlock([ascii(0x0110, "prompt:{}")]);
    const file = jpegWith(...parts.map(exifSegment), exifSegment(other));
    assert.deepEqual(await pictureTexts(file), { prompt: long });
  });

  it("passes over texts of cameras, but for descriptions and names", async () => {
    const block = exifBlock([
      ascii(0x010e, "A fox: brown"),
      ascii(0x010f, "Canon"),
      ascii(0x0110, "EOS R6: II"),
      ascii(0x0131, "Editor 1.0"),
      [0x0112, 3, Buffer.from([0, 6])],
    ]);
    assert.deepEqual(await pictureTexts(webpWith(block)), { Description: "A fox: brown", Software: "Editor 1.0" });
  });

  it("reads every kind of text chunk, also after a picture that is cut", async () => {
    const international = (flag: number, value: Buffer) =>
      Buffer.concat([Buffer.from("workflow\0"), Buffer.from([flag, 0]), Buffer.from("en\0\0"), value]);
    const head: [string, Buffer] = ["IHDR", Buffer.alloc(13)];
    const plain: [string, Buffer] = ["tEXt", Buffer.from("clé\0é", "latin1")];
    for (const data of [
      international(0, Buffer.from(PARAMETERS)),
      international(1, deflateSync(Buffer.from(PARAMETERS))),
    ]) {
      const file = pngWith(head, plain, ["zTXt", deflatedText("prompt", Buffer.from(PROMPT))], ["iTXt", data]);
      assert.deepEqual(await pictureTexts(file), { clé: "é", prompt: PROMPT, workflow: PARAMETERS });
      assert.deepEqual(await pictureTexts(file.subarray(0, file.length - 5)), { clé: "é", prompt: PROMPT });
    }
  });

  it("passes over damaged chunks, and refuses texts above the bound", async () => {
    const file = pngWith(["tEXt", Buffer.from("prompt\0{}")], ["zTXt", Buffer.from("a\0\0damaged")]);
    assert.deepEqual(await pictureTexts(file), { prompt: "{}" });
    file[20] = 1;
    assert.deepEqual(await pictureTexts(file), {});
    const bomb = pngWith(["zTXt", deflatedText("a", Buffer.alloc(2 ** 24 + 1, 65))]);
    await refuses(
      () => pictureTexts(bomb),
      "png.too-large",
      /^PNG, text "[^"]+": expected at most 16777216 bytes, received more\.$/,
    );
  });

  it("reads a block that sharp wrote into WebP, JPEG and AVIF files", async () => {
    const exif = { IFD0: { Model: `prompt:${PROMPT}`, Make: `workflow:${WORKFLOW}` } };
    for (const format of ["webp", "jpeg", "avif"] as const) {
      const file = await picture.clone().withExif(exif).toFormat(format).toBuffer();
      const { prompt, workflow } = await pictureTexts(file);
      assert.deepEqual([format, prompt, workflow], [format, PROMPT, WORKFLOW]);
    }
    assert.deepEqual(await pictureTexts(await picture.clone().gif().toBuffer()), {});
  });

  it("refuses files of other formats, and anything but a file", async () => {
    const expected =
      /^Picture: expected the bytes of a PNG, JPEG, WebP, AVIF, GIF, TIFF or BMP file, received [^:]+\.$/;
    await refuses(() => pictureTexts(Buffer.from("no picture")), "picture.invalid", expected);
    await refuses(() => pictureTexts(new Uint8Array()), "picture.invalid", expected);
    await refuses(() => pictureTexts("x.png" as never), "picture.invalid", expected);
  });

  it("survives directories that lie about lengths, offsets and counts", async () => {
    const block = exifBlock([...PILLOW, userComment("ASCII", Buffer.from("x"))]);
    for (let at = 0; at < block.length; at++) {
      for (const value of [0, 1, 0x7f, 0xff]) {
        const damaged = Buffer.from(block);
        damaged[at] = value;
        await pictureTexts(webpWith(damaged));
        await pictureTexts(webpWith(block).subarray(0, 12 + at));
      }
    }
    const sameText = Array.from({ length: 1100 }, (_, i) => ascii(0xc000 + i, `k${i}:[${"1".repeat(2 ** 10)}]`));
    const texts = await pictureTexts(exifBlock(sameText));
    assert.equal(Object.keys(texts).length, 1000);
  });
});
