import assert from "node:assert/strict";
import sharp from "sharp";
import { encodeItem } from "#src/io/files/save-images.js";
import { EXTENSIONS, FORMAT, isWholePicture, PICTURE_TYPES, pictureKind } from "#src/io/pictures/format.js";
import { Tensor } from "#src/tensor/tensor.js";

describe("FORMAT", () => {
  it("takes what a type of files can do", () => {
    const good = [
      {},
      { type: "png" },
      { bitDepth: 16 },
      { type: "png", bitDepth: 8, lossless: true },
      { type: "webp", quality: 1 },
      { type: "webp", lossless: true },
      { type: "avif", quality: 100, lossless: false },
      { type: "jpeg", quality: 80 },
    ];
    for (const format of good) assert.equal(FORMAT[1](format), true, JSON.stringify(format));
  });

  it("refuses what it cannot do, and what is not a format", () => {
    const bad = [
      "webp",
      null,
      [],
      5,
      undefined,
      { type: "gif" },
      { type: "jpg" },
      { kind: "png" },
      { quality: 80 },
      { type: "webp", quality: 0 },
      { type: "webp", quality: 101 },
      { type: "webp", quality: 80.5 },
      { type: "webp", quality: "80" },
      { type: "webp", quality: 80, lossless: true },
      { type: "webp", bitDepth: 16 },
      { type: "jpeg", lossless: true },
      { bitDepth: 12 },
      { lossless: "yes" },
    ];
    for (const format of bad) assert.equal(FORMAT[1](format), false, JSON.stringify(format));
  });
});

describe("pictureKind", () => {
  it("tells what sharp wrote by the content", async () => {
    const picture = sharp({ create: { width: 4, height: 4, channels: 3, background: "red" } });
    for (const format of ["png", "jpeg", "webp", "avif", "gif", "tiff"] as const) {
      assert.equal(pictureKind(await picture.clone().toFormat(format).toBuffer()), format);
    }
  });

  it("tells other formats by their first bytes, and reads brands as far as their box goes", () => {
    const box = (length: number, text: string) =>
      Buffer.from(`\0\0\0${String.fromCharCode(length)}ftyp${text}`, "latin1");
    assert.equal(pictureKind(box(24, "mif1\0\0\0\0mif1avif")), "avif");
    assert.equal(pictureKind(box(16, "mif1\0\0\0\0avif")), "heic");
    assert.equal(pictureKind(box(24, "heic\0\0\0\0mif1heic")), "heic");
    assert.equal(pictureKind(box(16, "isom\0\0\0\0")), undefined);
    assert.equal(pictureKind(Buffer.from("BM....")), "bmp");
    assert.equal(pictureKind(Buffer.from("8BPS")), "psd");
    assert.equal(pictureKind(Buffer.from("\xff\n", "latin1")), "jxl");
    assert.equal(pictureKind(Buffer.from("RIFF\0\0\0\0WAVE")), undefined);
    assert.equal(pictureKind(Buffer.from("GIF8, a text")), undefined);
    assert.equal(pictureKind(new Uint8Array()), undefined);
  });
});

describe("isWholePicture", () => {
  const isWhole = (name: string, file: Buffer) =>
    isWholePicture(name, file.length, async (at, length) => file.subarray(at, at + length));

  it("tells whole files of each format from cut ones and ones that end in zeros, with texts and without", async () => {
    const image = Tensor.from(
      Float32Array.from({ length: 32 * 32 * 3 }, (_, i) => (i % 97) / 97),
      [1, 32, 32, 3],
    );
    for (const type of PICTURE_TYPES) {
      for (const text of [[], [["prompt", "{}"] as const]]) {
        const file = await encodeItem(image, 0, { format: { type }, text });
        const name = `a${EXTENSIONS[type]}`;
        assert.equal(await isWhole(name, file), true, `${type} with ${text.length} texts`);
        for (const length of [0, 1, 11, 20, file.length - 1]) {
          assert.equal(await isWhole(name, file.subarray(0, length)), false, `${type} of ${length} bytes`);
        }
        const zeros = Buffer.concat([file.subarray(0, file.length - 40), Buffer.alloc(40)]);
        assert.equal(await isWhole(name, zeros), false, `${type} that ends in zeros`);
      }
    }
  });

  it("takes any other file as whole", async () => {
    assert.equal(await isWhole("a.txt", Buffer.alloc(0)), true);
    assert.equal(await isWhole("noname", Buffer.from("x")), true);
  });
});
