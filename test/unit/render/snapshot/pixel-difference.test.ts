import assert from "node:assert/strict";
import type { DecodedImage } from "latentkit";
import { pixelDifference, widePicture } from "#src/render/snapshot/pixel-difference.js";

const picture = (data: number[], width: number, channels: number, bitDepth = 8): DecodedImage => ({
  data: bitDepth === 8 ? Uint8Array.from(data) : Uint16Array.from(data),
  width,
  height: data.length / width / channels,
  channels,
  bitDepth,
  text: {},
});
const off = (a: DecodedImage, b: DecodedImage) => pixelDifference(widePicture(a), widePicture(b));

describe("pixelDifference", () => {
  it("counts pixels, and finds the largest difference and where they are", () => {
    const before = picture([0, 0, 0, 10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40, 50, 50, 50], 3, 3);
    const after = picture([0, 0, 0, 10, 11, 10, 20, 20, 20, 30, 30, 30, 40, 33, 47, 50, 50, 50], 3, 3);
    const box = { left: 1, top: 0, right: 2, bottom: 2 };
    assert.deepEqual(off(before, after), { pixels: 2, largest: 7, box });
    assert.deepEqual(off(before, before)!.pixels, 0);
  });

  it("grey equals RGB, no alpha equals opaque, 16 bits are exact", () => {
    assert.equal(off(picture([7, 9], 2, 1), picture([7, 7, 7, 9, 9, 9], 2, 3))!.pixels, 0);
    assert.equal(off(picture([7, 9], 2, 1), picture([7, 255, 9, 255], 2, 2))!.pixels, 0);
    assert.equal(off(picture([7, 7, 7], 1, 3), picture([7, 7, 7, 254], 1, 4))!.largest, 1);
    assert.equal(off(picture([7], 1, 1), picture([7 * 257], 1, 1, 16))!.pixels, 0);
    assert.deepEqual(off(picture([7], 1, 1), picture([7 * 257 + 1], 1, 1, 16))!.largest, 1);
  });

  it("is undefined for other sizes", () => {
    assert.equal(off(picture([1, 2], 2, 1), picture([1, 2], 1, 1)), undefined);
  });
});
