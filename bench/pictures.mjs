// Test pictures, 1024 x 1024 RGB, the same in every run: easy and hard ones for codecs.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { randn } from "latentkit";
import { PNG } from "pngjs";

export const SIZE = 1024;
const PIXELS = SIZE * SIZE;

/** Numbers in 0 … 1, seeded (mulberry32). */
function uniform(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const normals = (count, seed) => randn([count], { seed }).data;

/** Paints every pixel by `colour(x, y, channel, index)`, x and y in 0 … 1, rounded and clipped. */
function paint(colour) {
  const data = new Uint8ClampedArray(3 * PIXELS);
  for (let index = 0; index < PIXELS; index++) {
    const [x, y] = [(index % SIZE) / SIZE, Math.floor(index / SIZE) / SIZE];
    for (let c = 0; c < 3; c++) data[3 * index + c] = Math.round(colour(x, y, c, index));
  }
  return data;
}

const PICTURES = {
  /** Like a photograph: slow waves, forty round shapes with edges, the noise of a sensor. */
  natural() {
    const random = uniform(7);
    const within = (low, high) => low + (high - low) * random();
    const waves = [0, 1, 2].map(() =>
      Array.from({ length: 6 }, (_, k) => [within(0.5, 9), within(0.5, 9), within(0.5, 9), 18 / (1 + k)]),
    );
    const things = Array.from({ length: 40 }, () => ({
      at: [random(), random()],
      radius: within(0.01, 0.12),
      colour: [within(0, 120), within(0, 120), within(0, 120)],
    }));
    const [grey, grain] = [normals(PIXELS, 1n), normals(3 * PIXELS, 2n)];
    return paint((x, y, c, index) => {
      let value = 90 + [80 * x, 70 * y, 50 * (1 - x)][c];
      for (const [fx, fy, phase, size] of waves[c]) value += size * Math.sin(2 * Math.PI * (fx * x + fy * y) + phase);
      for (const { at, radius, colour } of things) {
        if ((x - at[0]) ** 2 + (y - at[1]) ** 2 < radius ** 2) value = value * 0.5 + colour[c];
      }
      return value + 2 * grey[index] + grain[3 * index + c];
    });
  },
  noise() {
    const random = uniform(8);
    return paint(() => Math.floor(256 * random()));
  },
  flat: () => paint((_x, _y, c) => [37, 120, 201][c]),
  /** Smooth with a trace of noise. */
  soft() {
    const grey = normals(PIXELS, 3n);
    return paint((x, y, c, index) => {
      const waves = Math.sin(2 * Math.PI * (1.3 * x + 0.2 * c)) * Math.cos(2 * Math.PI * (0.9 * y + 0.1 * c));
      return 110 + 60 * waves + 25 * Math.sin(40 * x * y + c) + 0.35 * grey[index];
    });
  },
  /** Text and flat areas: thirty rectangles under lines of thirty glyphs. */
  text() {
    const random = uniform(9);
    const below = (low, high) => low + Math.floor((high - low) * random());
    const data = new Uint8ClampedArray(3 * PIXELS).fill(245);
    const set = (x, y, colour) => data.set(colour, 3 * (y * SIZE + x));
    for (let k = 0; k < 30; k++) {
      const [left, top, width, height] = [below(0, 900), below(0, 900), below(40, 400), below(20, 200)];
      const colour = [below(0, 256), below(0, 256), below(0, 256)];
      for (let y = top; y < Math.min(top + height, SIZE); y++)
        for (let x = left; x < Math.min(left + width, SIZE); x++) set(x, y, colour);
    }
    const glyphs = Array.from({ length: 30 }, () => Array.from({ length: 96 }, () => random() < 0.4));
    for (let top = 20; top < 1000; top += 16) {
      for (let left = 20; left < 1000; left += 9) {
        const glyph = glyphs[below(0, 30)];
        for (const [i, isInk] of glyph.entries()) if (isInk) set(left + (i % 8), top + Math.floor(i / 8), [20, 20, 20]);
      }
    }
    return data;
  },
};

export const PICTURE_NAMES = Object.keys(PICTURES);

/** Writes a picture's pixels as NAME.rgb and, with pngjs, which no decoder here is tuned to, as NAME.png. */
export function writePicture(folder, name) {
  const data = Buffer.from(PICTURES[name]().buffer);
  writeFileSync(join(folder, `${name}.rgb`), data);
  writeFileSync(join(folder, `${name}.png`), neutralPng(data, { width: SIZE, height: SIZE }));
}

/**
 * Writes so many photographs, `00000.png` and so on, all different: crops of `natural` in different brightness. `encode`
 * turns RGB bytes into a file's.
 * @param {string} folder
 * @param {number} count
 * @param {{ width: number, height: number }} size
 * @param {(rgb: Buffer, size: { width: number, height: number }) => Buffer | Promise<Buffer>} encode
 */
export async function writePhotos(folder, count, { width, height }, encode) {
  const natural = PICTURES.natural();
  for (let i = 0; i < count; i++) {
    const [left, top] = [(i * 131) % (SIZE - width + 1), (i * 71) % (SIZE - height + 1)];
    const gain = 0.7 + 0.3 * ((i * 0.618) % 1);
    const rgb = Buffer.alloc(3 * width * height);
    for (let y = 0; y < height; y++) {
      const from = 3 * ((top + y) * SIZE + left);
      for (let x = 0; x < 3 * width; x++) rgb[3 * width * y + x] = natural[from + x] * gain;
    }
    // none is like another, whatever the crop
    rgb.writeUInt32BE(i, 0);
    writeFileSync(join(folder, `${String(i).padStart(5, "0")}.png`), await encode(rgb, { width, height }));
  }
}

/** A PNG file by pngjs, which no decoder here is tuned to. */
export function neutralPng(data, { width, height }) {
  const picture = new PNG({ width, height });
  picture.data = data;
  return PNG.sync.write(picture, {
    deflateLevel: 4,
    deflateStrategy: 0,
    inputColorType: 2,
    colorType: 2,
    inputHasAlpha: false,
  });
}
