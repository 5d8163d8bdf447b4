#!/usr/bin/env node
// Photographs through one graph (load, scale, sharpen, save), killed with SIGKILL at random and resumed: each result is there
// once and has the pixels that the photograph alone gives, and memory stays flat in a life that is not killed.
//   node scripts/soak-photos.mjs [PHOTOS] [KILLS]        10,000 and 20 if absent
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writePhotos } from "../bench/pictures.mjs";
import { decodePng, encodePng, render } from "../dist/index.js";
import { killAndResume, runBatch } from "./soak-batch/killed-batch.mjs";

const [photos, kills] = [Number(process.argv[2] ?? 10_000), Number(process.argv[3] ?? 20)];
const SIZE = { width: 512, height: 384 };
/** Growth of resident memory after the first tenth, in MB. */
const MAX_GROWTH = 60;

const scale = { upscale_method: "lanczos", width: 256, height: 192, crop: "disabled" };
const graph = {
  1: { class_type: "LoadImage", inputs: { image: "any.png" } },
  2: { class_type: "ImageScale", inputs: { image: ["1", 0], ...scale } },
  3: { class_type: "ImageSharpen", inputs: { image: ["2", 0], sharpen_radius: 1, sigma: 1, alpha: 0.2 } },
  4: { class_type: "SaveImage", inputs: { images: ["3", 0], filename_prefix: "small" } },
};

const folder = mkdtempSync(join(tmpdir(), "latentkit-soak-"));
const source = join(folder, "photos");
const graphFile = join(folder, "graph.json");
writeFileSync(graphFile, JSON.stringify(graph));
/** @param {string} out */
const argsOf = (out) => [graphFile, source, out, "{name}_{index}"];

const results = (out) => readdirSync(out).filter((name) => !name.endsWith(".jsonl"));

/** Throws unless every photograph has one result, and nothing else is there. */
function checkNames(out) {
  const names = results(out).sort();
  const expected = readdirSync(source)
    .sort()
    .map((name, index) => `${name.slice(0, -4)}_${index}_.png`)
    .sort();
  const wrong = names.filter((name, i) => name !== expected[i]);
  if (names.length !== expected.length || wrong.length > 0) {
    throw new Error(`${names.length} results of ${expected.length} photographs, first wrong one ${wrong[0]}.`);
  }
}

/** Throws unless results have the same bytes as those of the other run; returns their number. */
function compare(out, other) {
  for (const name of results(out)) {
    if (!readFileSync(join(out, name)).equals(readFileSync(join(other, name)))) throw new Error(`${name} differs.`);
  }
  return results(out).length;
}

/** Throws unless a single render gives the same pixels, for a hundred of the photographs. */
async function checkPixels(out) {
  const step = Math.max(1, Math.floor(photos / 100));
  const names = readdirSync(source).sort();
  for (let i = 0; i < names.length; i += step) {
    const options = { inputDir: source, outputDir: join(folder, "alone"), set: { "1.image": names[i] } };
    const [file] = (await render(graph, options)).files;
    const [alone, batched] = await Promise.all(
      [file.path, join(out, `${names[i].slice(0, -4)}_${i}_.png`)].map((path) => decodePng(readFileSync(path))),
    );
    if (!alone.data.every((value, at) => value === batched.data[at]))
      throw new Error(`${names[i]} differs from its own render.`);
  }
}

try {
  mkdirSync(source);
  await writePhotos(source, photos, SIZE, (data, size) => encodePng({ data, channels: 3, ...size }));
  const [quiet, killed] = [join(folder, "quiet"), join(folder, "killed")];
  const whole = await runBatch(argsOf(quiet));
  if (whole.code !== 0 || whole.done !== photos) throw new Error(`The quiet run ended with ${whole.code}.`);
  const settled = whole.memory.slice(Math.floor(whole.memory.length / 10));
  const [first, last, most] = [settled[0], settled.at(-1), Math.max(...settled)];
  const rate = (photos / whole.ms) * 1000;
  console.log(`${photos} photographs in ${(whole.ms / 1000).toFixed(0)} s (${rate.toFixed(0)} a second).`);
  console.log(`Resident memory: ${first} MB after a tenth, ${last} MB at the end, at most ${most} MB.`);
  checkNames(quiet);
  await checkPixels(quiet);
  const lives = await killAndResume(argsOf(killed), kills, whole.ms);
  checkNames(killed);
  const same = compare(killed, quiet);
  console.log(`${lives}.`);
  console.log(`${same} results, each once and with the bytes of the quiet run.`);
  if (most - first > MAX_GROWTH) throw new Error(`Memory grew by ${most - first} MB.`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
