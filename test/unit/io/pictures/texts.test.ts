import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import sharp from "sharp";
import { pictureTexts } from "#src/io/pictures/texts.js";
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

const PROMPT = '{"3": {"class_type": "KSampler", "inputs": {"seed": 18446744073709551615}}}';
const WORKFLOW = '{"nodes": [], "links": []}';
const PARAMETERS = "a fox, 狐\nNegative prompt: blur\nSteps: 20, Sampler: Euler a, Seed: 7";

const PILLOW = [
  ascii(0x010e, 'extra:{"a": 1}'),
  ascii(0x010f, `workflow:${WORKFLOW}`),
  ascii(0x0110, `prompt:${PROMPT}`),
];

const picture = sharp({ create: { width: 8, height: 8, channels: 3, background: "red" } });

describe("io/pictures/texts", () => {
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
    const expected = /^Picture: expected the bytes of a PNG, JPEG, WebP, AVIF, GIF or TIFF file, received [^:]+\.$/;
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
