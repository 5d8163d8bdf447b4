#!/usr/bin/env node
// node bench/png-levels.mjs: time and size of PNG files, level by level, as a table.
//   --turns N   encodings of each picture and level, 15; those that take long have three
// Ends with status 1 where a level is larger than the one below or its pixels differ.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { decodePng, device, encodePng } from "latentkit";
import { PICTURE_NAMES, SIZE, writePicture } from "./pictures.mjs";
import { summary } from "./timing.mjs";

const SLOW_MS = 50;
const { values: options } = parseArgs({ options: { turns: { type: "string", default: "15" } } });

const print = (text) => process.stdout.write(`${text}\n`);
const row = (cells) => `| ${cells.join(" | ")} |`;
const inMs = (ms) => (ms < 10 ? ms.toFixed(1) : ms.toFixed(0));

/** The natural picture in 32 colours, four of red, four of green and two of blue. */
function inFewColours(natural) {
  const levels = [3, 3, 1];
  return natural.map((sample, i) => {
    const most = levels[i % 3];
    return (Math.round((sample / 255) * most) * 255) / most;
  });
}

function readPictures() {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-levels-"));
  try {
    const read = (name) => {
      writePicture(folder, name);
      return [name, new Uint8Array(readFileSync(join(folder, `${name}.rgb`)))];
    };
    const pictures = Object.fromEntries(PICTURE_NAMES.map(read));
    return { ...pictures, "32 colours": inFewColours(pictures.natural) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measure(data, level) {
  const image = { data, width: SIZE, height: SIZE, channels: 3 };
  const times = [];
  let file;
  for (let turn = 0; turn < Number(options.turns); turn++) {
    const began = performance.now();
    file = await encodePng(image, { level });
    times.push(performance.now() - began);
    if (turn >= 2 && times[0] > SLOW_MS) break;
  }
  const isSame = Buffer.from((await decodePng(file)).data).equals(data);
  return { bytes: file.length, ms: summary(times).median, isSame };
}

print(`${cpus()[0].model}, ${availableParallelism()} processors, ${device().isa}; ${SIZE} x ${SIZE}, RGB.\n`);
const pictures = readPictures();
print(row(["Level", ...Object.keys(pictures)]));
print(row(["---", ...Object.keys(pictures).map(() => "---:")]));
const below = {};
for (let level = 1; level <= 9; level++) {
  const cells = [];
  for (const [name, data] of Object.entries(pictures)) {
    const { bytes, ms, isSame } = await measure(data, level);
    if (!isSame || bytes > below[name]) {
      process.stderr.write(`${name}, level ${level}: ${isSame ? "larger than the level below" : "other pixels"}.\n`);
      process.exitCode = 1;
    }
    below[name] = bytes;
    cells.push(`${bytes.toLocaleString("en")} B, ${inMs(ms)} ms`);
  }
  print(row([level, ...cells]));
}
