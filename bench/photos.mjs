#!/usr/bin/env node
// Photographs through one graph: load, scale to half by lanczos, sharpen, save. Ours on two cores, and the same work in PyTorch
// and Pillow with two processes, in turn:
//   node bench/photos.mjs [PHOTOS] [ROUNDS] [WIDTHxHEIGHT]
// 1,000, 3 and 1024x768 if absent. The results stay until the end, as in bench/batch.mjs. BENCH_PYTHON names an interpreter.
import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { decodePng } from "../dist/index.js";
import { neutralPng, writePhotos } from "./pictures.mjs";

/** Files of the same bytes under other names beyond these. */
const DIFFERENT = 200;
const MUST = 4;

const here = fileURLToPath(new URL(".", import.meta.url));
const [photos, rounds] = [Number(process.argv[2] ?? 1000), Number(process.argv[3] ?? 3)];
const [width, height] = (process.argv[4] ?? "1024x768").split("x").map(Number);
const python = process.env.BENCH_PYTHON ?? "/usr/bin/python3";
const scratch = mkdtempSync(join(tmpdir(), "latentkit-bench-"));
const folder = join(scratch, "photos");

const sharpen = { sharpen_radius: 1, sigma: 1, alpha: 0.1 };
const small = { width: width >> 1, height: height >> 1 };
const graph = {
  1: { class_type: "LoadImage", inputs: { image: "any.png" } },
  2: { class_type: "ImageScale", inputs: { image: ["1", 0], upscale_method: "lanczos", ...small, crop: "disabled" } },
  3: { class_type: "ImageSharpen", inputs: { image: ["2", 0], ...sharpen } },
  4: { class_type: "SaveImage", inputs: { images: ["3", 0], filename_prefix: "ours" } },
};

const program = join(scratch, "ours.mjs");
writeFileSync(
  program,
  `import { batch, picturesIn } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
  const [folder, out, concurrency] = [process.argv[2], process.argv[3], Number(process.argv[4])];
  let [done, started, end, cpu] = [0, 0, 0];
  const warm = concurrency * 4;
  const options = { outputDir: out, journal: out + "/batch.jsonl", concurrency, name: "{name}_{index}" };
  for await (const event of batch(${JSON.stringify(graph)}, picturesIn(folder), options)) {
    if (event.type === "item-failed") throw event.error;
    if (event.type !== "item-done") continue;
    done++;
    if (done === warm) [started, cpu] = [performance.now(), process.cpuUsage()];
    end = performance.now();
  }
  const { user, system } = process.cpuUsage(cpu);
  // the peer's time has no start either
  const all = done / (done - warm);
  console.log(JSON.stringify({ seconds: ((end - started) / 1000) * all, cpu: ((user + system) / 1e6) * all, failed: 0 }));`,
);

const fresh = () => mkdtempSync(join(scratch, "out-"));

function ours(out) {
  return run(process.execPath, [program, folder, out, 2]);
}

function torch(out) {
  const { sharpen_radius: radius, sigma, alpha } = sharpen;
  const setting = { ...small, radius, sigma, alpha, prompt: graph };
  return run(python, [join(here, "peers/photos.py"), folder, out, 2, JSON.stringify(setting)]);
}

function run(program, args) {
  const done = spawnSync(program, args.map(String), { encoding: "utf8" });
  if (done.status !== 0) {
    const lines = `${done.stderr ?? done.error}`.trim().split("\n");
    return { why: lines.find((line) => line.includes("Error")) ?? lines.at(-1) };
  }
  const result = JSON.parse(done.stdout);
  if (result.failed !== 0) throw new Error("A process of the peer failed.");
  return result;
}

/** Largest difference between our picture of the first photograph and the peer's. */
async function difference(outs) {
  const [a, b] = await Promise.all(
    outs.map(async (out) => {
      const name = readdirSync(out).filter((name) => name.includes("00000") && name.endsWith(".png"))[0];
      return (await decodePng(readFileSync(join(out, name)))).data;
    }),
  );
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

try {
  mkdirSync(folder);
  await writePhotos(folder, Math.min(photos, DIFFERENT), { width, height }, neutralPng);
  const path = (i) => join(folder, `${String(i).padStart(5, "0")}.png`);
  for (let i = DIFFERENT; i < photos; i++) linkSync(path(i % DIFFERENT), path(i));
  console.log(
    `${cpus()[0].model}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}; ${photos} photographs of ${width} x ${height}, medians of ${rounds} rounds`,
  );
  const subjects = { "latentkit, 2 threads": ours, "PyTorch and Pillow, 2 processes": torch };
  /** @type {Record<string, number[]>} */
  const rates = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
  // CPU time of a photograph in ms: on a machine that others use the better measure
  /** @type {Record<string, number[]>} */
  const times = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
  const ratios = [];
  for (let round = 0; round < rounds; round++) {
    const outs = [];
    for (const [name, subject] of Object.entries(subjects)) {
      const out = fresh();
      const result = subject(out);
      if (result.why !== undefined) throw new Error(`${name}: not run (${result.why})`);
      rates[name]?.push(photos / result.seconds);
      times[name]?.push((result.cpu / photos) * 1000);
      outs.push(out);
    }
    const [mine = 0, peer = 0] = Object.values(rates).map((list) => list.at(-1));
    ratios.push(mine / peer);
    if (round === 0) console.log(`largest difference of the first picture: ${await difference(outs)} of 255`);
  }
  for (const [name, list] of Object.entries(rates)) {
    const ms = median(times[name] ?? []);
    console.log(`${name}: ${median(list).toFixed(1)} photographs a second, ${ms.toFixed(1)} ms of CPU time each`);
  }
  console.log(
    `ratio ${median(ratios).toFixed(2)} (${ratios.map((ratio) => ratio.toFixed(2)).join(", ")}; must ${MUST})`,
  );
  if (median(ratios) < MUST) process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
