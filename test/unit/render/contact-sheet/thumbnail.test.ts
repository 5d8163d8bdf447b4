import assert from "node:assert/strict";
import { PNG } from "pngjs";
import { encodePng } from "#src/io/png/png.js";
import { thumbnail } from "#src/render/contact-sheet/thumbnail.js";
import { seededInts } from "../../../helpers/seeded.js";

const WHITE = [255, 255, 255] as const;

/** The mean over each output pixel's area, in fractions of source pixels. */
function areaMeans(data: Uint8Array, width: number, height: number, toWidth: number, toHeight: number): number[] {
  const means: number[] = [];
  const share = (from: number, i: number, n: number, of: number) =>
    Math.max(0, Math.min(((i + 1) * of) / n, from + 1) - Math.max((i * of) / n, from));
  for (let y = 0; y < toHeight; y++) {
    for (let x = 0; x < toWidth; x++) {
      for (let c = 0; c < 3; c++) {
        let [sum, area] = [0, 0];
        for (let v = 0; v < height; v++) {
          for (let u = 0; u < width; u++) {
            const weight = share(u, x, toWidth, width) * share(v, y, toHeight, height);
            sum += weight * data[(v * width + u) * 3 + c]!;
            area += weight;
          }
        }
        means.push(sum / area);
      }
    }
  }
  return means;
}

describe("thumbnails", () => {
  it("are the means of areas, keep the aspect and never grow", async () => {
    const next = seededInts(5);
    for (const [width, height, side, toWidth, toHeight] of [
      [31, 17, 10, 10, 5],
      [17, 31, 12, 7, 12],
      [9, 9, 3, 3, 3],
      [40, 1, 7, 7, 1],
      [5, 4, 9, 5, 4],
    ] as const) {
      const data = Uint8Array.from({ length: width * height * 3 }, () => next(256));
      const small = await thumbnail(await encodePng({ data, width, height, channels: 3 }), side, WHITE);
      assert.deepEqual([small.width, small.height, small.channels], [toWidth, toHeight, 3]);
      const means = areaMeans(data, width, height, toWidth, toHeight);
      for (const [i, mean] of means.entries())
        assert.ok(Math.abs(small.data[i]! - mean) <= 0.5 + 1e-6, `${i}: ${mean}`);
    }
  });

  it("reads grey, transparency over the ground, and 16 bits", async () => {
    const grey = await thumbnail(
      await encodePng({ data: Uint8Array.of(10, 200), width: 2, height: 1, channels: 1 }),
      9,
      WHITE,
    );
    assert.deepEqual([...grey.data], [10, 10, 10, 200, 200, 200]);
    const clear = await encodePng({
      data: Uint8Array.of(10, 20, 30, 0, 10, 20, 30, 255),
      width: 2,
      height: 1,
      channels: 4,
    });
    assert.deepEqual([...(await thumbnail(clear, 9, [1, 2, 3])).data], [1, 2, 3, 10, 20, 30]);
    const greyAlpha = await encodePng({ data: Uint8Array.of(100, 51), width: 1, height: 1, channels: 2 });
    assert.deepEqual([...(await thumbnail(greyAlpha, 9, [0, 0, 0])).data], [20, 20, 20]);
    const deep = new PNG({ width: 1, height: 1, bitDepth: 16 });
    deep.data = Buffer.from(Uint16Array.of(65535, 257 * 7, 0, 65535).buffer);
    const bytes = PNG.sync.write(deep, { bitDepth: 16, inputHasAlpha: true });
    assert.deepEqual([...(await thumbnail(bytes, 9, WHITE)).data], [255, 7, 0]);
  });
});
