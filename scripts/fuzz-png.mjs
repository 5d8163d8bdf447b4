#!/usr/bin/env node
// Writes random pictures of odd sizes with the native encoder and reads them back with zlib's inflate and an unfilter
// of its own; one in a hundred with pngjs too. node scripts/fuzz-png.mjs [--images 100000] [--seed 1]
import { parseArgs } from "node:util";
import { inflateSync } from "node:zlib";
import { PNG } from "pngjs";
import { loadNative } from "#src/native/load.js";
import { seededRandom } from "./seeded-random.mjs";

const { values } = parseArgs({
  options: { images: { type: "string", default: "100000" }, seed: { type: "string", default: "1" } },
});
const native = loadNative();
const isas = native.isas();
const images = Number(values.images);
const first = Number(values.seed);

for (let k = 0; k < images; k++) {
  const seed = first + k;
  const picture = randomPicture(seededRandom(seed));
  native.setIsa(isas[k % isas.length]);
  const { pixels, width, height, channels } = picture;
  const file = Buffer.from(await native.encodePng(pixels, width, height, channels, 4, []));
  const read = unfilter(inflateSync(data(file)), picture);
  if (!read.equals(pixels)) fail(seed, picture, "zlib reads other pixels");
  if (k % 100 === 0 && !samePixels(PNG.sync.read(file), picture)) fail(seed, picture, "pngjs reads other pixels");
  if (k % 5000 === 4999) console.log(`${k + 1} pictures`);
}
console.log(`${images} pictures from seed ${first}: no finding.`);

function fail(seed, { width, height, channels }, what) {
  console.error(`seed ${seed}, ${width} x ${height} x ${channels}: ${what}.`);
  process.exit(1);
}

function randomPicture(next) {
  const channels = 1 + next(4);
  // mostly small; some rows longer than a unit, some pictures of several units
  const [maxWidth, maxHeight] = [
    [40, 40],
    [300, 300],
    [30000, 3],
    [9, 20000],
  ][next(200) > 3 ? 0 : next(4)];
  const [width, height] = [1 + next(maxWidth), 1 + next(maxHeight)];
  const pixels = Buffer.alloc(width * height * channels);
  const row = width * channels;
  const period = 1 + next(2 * row);
  const range = 1 + next(256);
  const kinds = Array.from({ length: 3 }, () => next(6));
  for (let i = 0; i < pixels.length; i++) {
    const kind = kinds[Math.floor((3 * i) / pixels.length)];
    const old = i >= period ? pixels[i - period] : next(256);
    if (kind === 0) pixels[i] = next(range);
    else if (kind === 1) pixels[i] = old;
    else if (kind === 2) pixels[i] = next(50) === 0 ? next(256) : old;
    else if (kind === 3) pixels[i] = (i / channels + (i / row) * 2 + next(3)) & 255;
    else if (kind === 4) pixels[i] = next(300) === 0 ? next(256) : 0;
    else pixels[i] = range;
  }
  return { pixels, width, height, channels };
}

/** The data of the only IDAT chunk. */
function data(file) {
  for (let at = 8; ; ) {
    const length = file.readUInt32BE(at);
    if (file.toString("latin1", at + 4, at + 8) === "IDAT") return file.subarray(at + 8, at + 8 + length);
    at += 12 + length;
  }
}

function unfilter(raw, { width, height, channels }) {
  const n = width * channels;
  const out = Buffer.alloc(n * height);
  if (raw.length !== (n + 1) * height) return Buffer.alloc(0);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (n + 1)];
    for (let i = 0; i < n; i++) {
      const at = y * n + i;
      const left = i < channels ? 0 : out[at - channels];
      const above = y === 0 ? 0 : out[at - n];
      const corner = y === 0 || i < channels ? 0 : out[at - n - channels];
      const near = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
      out[at] = raw[y * (n + 1) + 1 + i] + near;
    }
  }
  return out;
}

function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  if (pa <= pb && pa <= pc) return a;
  return pb <= pc ? b : c;
}

function samePixels(read, { pixels, width, height, channels }) {
  if (read.width !== width || read.height !== height) return false;
  for (let i = 0; i < width * height; i++) {
    const sample = (k) => pixels[i * channels + k];
    const colour = channels < 3 ? [sample(0), sample(0), sample(0)] : [sample(0), sample(1), sample(2)];
    const expected = [...colour, channels % 2 === 0 ? sample(channels - 1) : 255];
    if (expected.some((value, k) => read.data[4 * i + k] !== value)) return false;
  }
  return true;
}
