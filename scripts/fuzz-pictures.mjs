#!/usr/bin/env node
import { parseArgs } from "node:util";
// Damages pictures of every format (bytes, lengths, ends, texts) and reads their texts and their pixels: each is read or
// refused in one sentence, soon.
//   node scripts/fuzz-pictures.mjs [--minutes 10] [--seed 1] [--format webp] [--texts]
// --format takes the files of one format, --texts reads texts alone.
// A finding names its seed; --seed SEED --minutes 0 repeats that one.
import sharp from "sharp";
import { LatentkitError } from "#src/base/errors.js";
import { encodeItem } from "#src/io/files/save-images.js";
import { decodePicture, pictureTexts, readStill } from "#src/io/pictures/decode.js";
import { Tensor } from "#src/tensor/tensor.js";
import { seededRandom } from "./seeded-random.mjs";

/** Time of one file: pictures of 2^27 pixels, the most that are read, take two seconds. */
const MOST_MS = 10_000;
const MOST_CHARACTERS = 1000;
const MINUTE_MS = 60_000;
const CHANGES = 6;
const STRANGE_BYTES = [0, 1, 0x7f, 0x80, 0xff];
const STRANGE_WORDS = [0, 1, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff];
/** @type {readonly (readonly [string, string])[]} */
const TEXTS = [
  ["prompt", '{"1": {"class_type": "SaveImage", "inputs": {}}}'],
  ["workflow", JSON.stringify({ nodes: [], links: [], text: "x".repeat(300) })],
  ["parameters", "a fox, 狐\nSteps: 20, Seed: 7"],
  ["latentkit", '{"version": 1}'],
];

/** Runs of 8 bits: 5 x 2 pixels of four colours. */
const BMP_OF_RUNS =
  "424d58000000000000004600000028000000050000000200000001000800010000001200000000000000000000000400000000000000" +
  "000000000000c8000096000064000000000301020300020100000002020001020001";

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    format: { type: "string", default: "" },
    texts: { type: "boolean", default: false },
  },
});

const files = (await soundFiles()).filter(([name]) => name.includes(options.format));
const until = performance.now() + Number(options.minutes) * MINUTE_MS;
const first = Number(options.seed);
const counts = { texts: 0, pictures: 0, refused: 0 };
let longestMs = 0;
let findings = 0;
let seed = first;
for (; seed === first || performance.now() < until; seed++) {
  await tryOne(seed);
  if ((seed - first + 1) % (options.texts ? 1_000_000 : 10_000) === 0)
    console.log(`${seed - first + 1} files, ${JSON.stringify(counts)}`);
}
console.log(
  `${seed - first} damaged files from seed ${first}: ${counts.texts} with texts, ${counts.pictures} pictures read, ` +
    `${counts.refused} refusals, ${longestMs.toFixed(0)} ms at most, ${findings} findings.`,
);
process.exitCode = findings === 0 ? 0 : 1;

/** Files of every format, small so that most changes hit what describes them. */
async function soundFiles() {
  const image = Tensor.from(
    Float32Array.from({ length: 24 * 16 * 4 }, (_, i) => (i % 83) / 83),
    [1, 16, 24, 4],
  );
  /** @type {import("#src/io/pictures/format.js").PictureFormat[]} */
  const formats = [
    {},
    { bitDepth: 16 },
    { type: "webp" },
    { type: "webp", lossless: true },
    { type: "jpeg" },
    { type: "avif" },
    { type: "avif", lossless: true },
  ];
  const saved = await Promise.all(
    formats.map(async (format) => {
      const name = `${format.type ?? "png"}${format.lossless ? " lossless" : ""}${format.bitDepth ?? ""}`;
      return [name, await encodeItem(image, 0, { format, text: TEXTS })];
    }),
  );
  /** @type {import("sharp").SharpOptions} */
  const frames = { raw: { width: 12, height: 24, channels: 4, pageHeight: 8 } };
  const moving = () => sharp(Buffer.from(Array.from({ length: 12 * 24 * 4 }, (_, i) => (i * 7) % 256)), frames);
  const commented = { IFD0: { ImageDescription: "Workflow:{}" }, IFD2: { UserComment: "Steps: 20" } };
  return [
    ...saved,
    ["gif", await moving().gif().toBuffer()],
    ["moving webp", await moving().webp().withExif(commented).toBuffer()],
    ["bmp", Buffer.from(BMP_OF_RUNS, "hex")],
    ["tiff", await sharp(saved[0][1]).tiff({ compression: "lzw" }).toBuffer()],
    ["turned jpeg", await sharp(saved[0][1]).jpeg().withExif(commented).withMetadata({ orientation: 6 }).toBuffer()],
  ];
}

async function tryOne(seed) {
  const next = seededRandom(seed);
  const [name, sound] = files[next(files.length)];
  const file = damaged(sound, next);
  const report = (what) => {
    findings++;
    console.error(`seed ${seed}, ${name}: ${what}`);
  };
  const started = performance.now();
  await refusesWell(report, async () => {
    const texts = await pictureTexts(file);
    if (Object.keys(texts).length > 0) counts.texts++;
  });
  if (!options.texts) {
    await refusesWell(report, async () => {
      await decodePicture(file, 1 + next(3));
      counts.pictures++;
    });
  }
  if (!options.texts && next(10) === 0) await refusesWell(report, () => readStill(file));
  const ms = performance.now() - started;
  longestMs = Math.max(longestMs, ms);
  if (ms > MOST_MS) report(`took ${ms.toFixed(0)} ms`);
}

/** Reports anything thrown but a LatentkitError of one sentence. */
async function refusesWell(report, read) {
  try {
    await read();
  } catch (error) {
    counts.refused++;
    if (!(error instanceof LatentkitError)) report(`threw ${error?.stack ?? error}`);
    else if (/\n/.test(error.message) || error.message.length > MOST_CHARACTERS) report(`said ${error.message}`);
  }
}

function damaged(sound, next) {
  let file = Buffer.from(sound);
  for (let change = 1 + next(CHANGES); change > 0 && file.length > 8; change--) {
    // half of the changes at the beginning or at the end, where files are described
    const near = Math.min(file.length, 300);
    const at = [next(file.length), next(near), file.length - 1 - next(near), next(file.length)][next(4)];
    const kind = next(12);
    if (kind < 4) file[at] = next(256);
    else if (kind < 6) file[at] = STRANGE_BYTES[next(STRANGE_BYTES.length)];
    else if (kind === 6 && at + 4 <= file.length) file.writeUInt32BE(STRANGE_WORDS[next(STRANGE_WORDS.length)], at);
    else if (kind === 7 && at + 4 <= file.length) file.writeUInt32LE(STRANGE_WORDS[next(STRANGE_WORDS.length)], at);
    else if (kind === 8) file = file.subarray(0, at);
    else if (kind === 9) file = Buffer.concat([file.subarray(0, at), file.subarray(at + 1 + next(40))]);
    else if (kind === 10) file = Buffer.concat([file.subarray(0, at), file.subarray(next(file.length))]);
    else file[at] ^= 1 << next(8);
  }
  return file;
}
