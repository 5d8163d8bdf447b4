import assert from "node:assert/strict";
import type { Canvas } from "#src/render/contact-sheet/canvas.js";
import { drawDifference } from "#src/render/snapshot/difference-picture.js";
import { pixelDifference, type WidePicture, widePicture } from "#src/render/snapshot/pixel-difference.js";

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
