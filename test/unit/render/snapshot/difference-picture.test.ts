import assert from "node:assert/strict";
import type { DecodedImage } from "latentkit";
import type { Canvas } from "#src/render/contact-sheet/canvas.js";
import {
  drawDifference,
  pixelDifference,
  type WidePicture,
  widePicture,
} from "#src/render/snapshot/difference-picture.js";

const grey = (width: number, height: number, at?: number): WidePicture => {
  const data = new Uint8Array(width * height).fill(100);
  if (at !== undefined) data[at] = 101;
  return widePicture({ data, width, height, channels: 1, bitDepth: 8, text: {} });
};
const draw = (a: WidePicture, b: WidePicture) =>
  drawDifference(a, b, pixelDifference(a, b), { title: "a", subtitle: "b" });

/** Pixels of a page that are clearly red, and where they begin. */
function reds({ data, width }: Canvas) {
  let [count, left] = [0, width];
  for (let i = 0; i < data.length; i += 3) {
    if (data[i]! - data[i + 1]! < 60) continue;
    count++;
    left = Math.min(left, (i / 3) % width);
  }
  return { count, left };
}

describe("drawDifference", () => {
  it("shows one pixel that is one step off, in the third column alone", () => {
    const page = draw(grey(32, 32), grey(32, 32, 40));
    const { count, left } = reds(page);
    // a pixel of 6 x 6, and a frame of two lines around it
    assert.equal(count, 36 + (22 * 22 - 18 * 18));
    assert.ok(left > (page.width * 2) / 3);
    assert.equal(reds(draw(grey(32, 32), grey(32, 32))).count, 0);
  });

  it("loses no pixel of a large picture, and keeps the page small", () => {
    const page = draw(grey(2000, 1500), grey(2000, 1500, 2000 * 700 + 1001));
    assert.ok(page.width < 2500 && page.height < 1000);
    assert.ok(reds(page).count > 1);
  });

  it("looks no global up for each pixel, which is slow in jest's context", () => {
    const lookUps = (side: number) => {
      const [a, b] = [grey(side, side), grey(side, side, 40)];
      const own = Object.getOwnPropertyDescriptor(globalThis, "Math")!;
      let count = 0;
      const get = () => {
        count++;
        return own.value as unknown;
      };
      Object.defineProperty(globalThis, "Math", { get, configurable: true });
      try {
        draw(a, b);
      } finally {
        Object.defineProperty(globalThis, "Math", own);
      }
      return count;
    };
    assert.ok(lookUps(128) <= lookUps(32), "more for more pixels");
  });

  it("shows what only one of two sizes has", () => {
    const { count } = reds(draw(grey(10, 20), grey(20, 10)));
    assert.equal(count, 9 * 9 * 300);
  });
});

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
