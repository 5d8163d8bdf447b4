#!/usr/bin/env node
// Renders one graph with a LoRA whose strength changes each time: the memory of this process and of ONNX Runtime's must
// stay level once the sessions that are kept have been made. Usage: soak-loras.mjs [RUNS]
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createCheckpointHost } from "../dist/host/checkpoint/index.js";
import { render } from "../dist/index.js";
import { residentMb } from "./resident-mb.mjs";

const runs = Number(process.argv[2] ?? 200);
/** Until then sessions fill the memory that they may take. */
const WARM_UP = Math.floor(runs / 4);
/** A tiny UNet and its text encoder, as float32, which every run loads anew. */
const MOST_GROWTH_MB = 40;

const folder = mkdtempSync(join(tmpdir(), "latentkit-loras-"));
const models = join(folder, "models");
execFileSync(process.execPath, [fileURLToPath(new URL("make-tiny-models.mjs", import.meta.url)), models]);

/** @param {string} class_type @param {Record<string, unknown>} inputs */
const node = (class_type, inputs) => ({ class_type, inputs });
const graph = {
  1: node("CheckpointLoaderSimple", { ckpt_name: "tiny-sd1.safetensors" }),
  2: node("LoraLoader", {
    model: ["1", 0],
    clip: ["1", 1],
    lora_name: "tiny-sd1-lora.safetensors",
    strength_model: 1,
    strength_clip: 1,
  }),
  3: node("CLIPTextEncode", { clip: ["2", 1], text: "a mountain lake" }),
  4: node("EmptyLatentImage", { width: 64, height: 64, batch_size: 1 }),
  5: node("KSampler", {
    model: ["2", 0],
    positive: ["3", 0],
    negative: ["3", 0],
    latent_image: ["4", 0],
    seed: 1,
    steps: 2,
    cfg: 5,
    sampler_name: "euler",
    scheduler: "normal",
    denoise: 1,
  }),
  6: node("VAEDecode", { vae: ["1", 2], samples: ["5", 0] }),
  7: node("SaveImage", { images: ["6", 0], filename_prefix: "lora" }),
};

/** Processes that this one has started. */
const children = () =>
  readdirSync("/proc/self/task").flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );

const host = createCheckpointHost({ models, memory: 64 * 2 ** 20 });
/** @type {{ own: number, child: number }[]} */
const memory = [];
try {
  for (let run = 0; run < runs; run++) {
    const strength = 0.5 + run / runs;
    const set = { "2.strength_model": strength, "2.strength_clip": strength };
    const { status } = await render(graph, { host, outputDir: join(folder, "out"), set });
    assert.equal(status, "success");
    const [child] = children();
    assert.ok(child !== undefined);
    memory.push({ own: residentMb(process.pid), child: residentMb(child) });
  }
} finally {
  await host.close();
  rmSync(folder, { recursive: true, force: true });
}

for (const side of /** @type {const} */ (["own", "child"])) {
  const all = memory.map((entry) => entry[side]);
  const middle = (all.length + WARM_UP) >> 1;
  /** @param {number[]} values */
  const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
  const [before, after] = [median(all.slice(WARM_UP, middle)), median(all.slice(middle))];
  process.stdout.write(`${runs} runs, ${side}: ${before.toFixed(0)} MB, then ${after.toFixed(0)} MB\n`);
  assert.ok(after - before < MOST_GROWTH_MB, `${side} grew by ${(after - before).toFixed(0)} MB`);
}
