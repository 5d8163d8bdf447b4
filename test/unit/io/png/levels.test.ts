import assert from "node:assert/strict";
import { PNG } from "pngjs";
import { decodePng, encodePng } from "#src/io/png/png.js";
import { seededInts } from "../../../helpers/seeded.js";

const SIZE = 256;
const LEVELS = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/** Samples of a picture by `value(x, y, channel)`, clipped. */
function paint(value: (x: number, y: number, channel: number) => number): Uint8Array {
  const data = new Uint8ClampedArray(SIZE * SIZE * 3);
  for (let i = 0; i < data.length; i++)
    data[i] = Math.floor(value(Math.floor(i / 3) % SIZE, Math.floor(i / (3 * SIZE)), i % 3));
  return new Uint8Array(data.buffer);
}

const wave = (x: number, y: number, c: number) => 128 + 90 * Math.sin(x / 31 + c) * Math.cos(y / 23 - c / 2);

function pictures(): Record<string, Uint8Array> {
  const random = seededInts(21);
  const glyphs = Array.from({ length: 20 }, () => Array.from({ length: 64 }, () => random(5) < 2));
  const line = Array.from({ length: (SIZE / 8) ** 2 }, () => glyphs[random(20)]!);
  return {
    natural: paint((x, y, c) => wave(x, y, c) + random(5) + random(4)),
    noise: paint(() => random(256)),
    flat: paint((_x, _y, c) => [37, 120, 201][c]!),
    soft: paint((x, y, c) => wave(x, y, c) + (random(9) === 0 ? 1 : 0)),
    text: paint((x, y) => (line[(y >> 3) * (SIZE / 8) + (x >> 3)]![(y & 7) * 8 + (x & 7)] ? 20 : 245)),
  };
}

/** The picture `wave` in so many colours, spread by chance between the two nearest if `isDithered`. */
function quantised(colours: number, isDithered: boolean): Uint8Array {
  const random = seededInts(colours);
  const palette = Array.from({ length: colours }, () => [random(256), random(256), random(256)]);
  const indices = Array.from({ length: SIZE * SIZE }, (_, i) => {
    const place =
      (wave(i % SIZE, Math.floor(i / SIZE), 0) / 256) * (colours - 1) + (isDithered ? random(100) / 100 : 0.5);
    return Math.min(colours - 1, Math.max(0, Math.floor(place)));
  });
  return paint((x, y, c) => palette[indices[y * SIZE + x]!]![c]!);
}

const encode = (data: Uint8Array, level?: number) =>
  encodePng({ data, width: SIZE, height: SIZE, channels: 3 }, { level });

describe("levels of PNG files", () => {
  for (const [name, data] of Object.entries(pictures())) {
    it(`make ${name} no larger than the level below, with the same pixels`, async () => {
      let below = Number.POSITIVE_INFINITY;
      for (const level of LEVELS) {
        const file = await encode(data, level);
        assert.ok(file.length <= below, `level ${level}: ${file.length} bytes after ${below}`);
        below = file.length;
        assert.deepEqual((await decodePng(file)).data, data);
        const { data: rgba } = PNG.sync.read(file);
        assert.ok(data.every((sample, i) => rgba[Math.floor(i / 3) * 4 + (i % 3)] === sample));
      }
    });
  }

  it("default to level 4", async () => {
    const data = pictures().natural!;
    assert.deepEqual(await encode(data), await encode(data, 4));
  });

  // Pillow 9.4 with zlib 1.2.13, compress_level=4
  for (const [colours, isDithered, pillow] of [
    [16, false, 7567],
    [32, false, 11_933],
    [64, false, 18_759],
    [16, true, 25_859],
    [32, true, 29_676],
    [64, true, 37_028],
  ] as const) {
    it(`make ${colours} colours${isDithered ? ", dithered," : ""} smaller than Pillow does`, async () => {
      const { length } = await encode(quantised(colours, isDithered));
      assert.ok(length <= pillow, `${length} bytes, Pillow ${pillow}`);
    });
  }
});
