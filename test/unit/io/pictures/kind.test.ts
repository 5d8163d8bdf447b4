import assert from "node:assert/strict";
import sharp from "sharp";
import { pictureKind } from "#src/io/pictures/kind.js";

describe("io/pictures/kind", () => {
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
