#!/usr/bin/env node
// A batch of pictures of 512 x 512 from latents of 64 x 64, ours on two cores and on one (taskset), and the same work in PyTorch
// and Pillow with two processes, in turn:
//   node bench/batch.mjs [ITEMS] [ROUNDS]
// 10,000 and 1 if absent. The pictures stay until the end, 0.7 GB for 1,000 items a round: a file system that has just
// deleted thousands of files makes new ones more slowly, and the last subjects would pay for the first.
// Debian's python3-torch and python3-pil; BENCH_PYTHON names another interpreter.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { modelSampling } from "../dist/index.js";
import { LATENT_RGB } from "../dist/tensor/sampling/latent-format.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const [items, rounds] = [Number(process.argv[2] ?? 10_000), Number(process.argv[3] ?? 1)];
const python = process.env.BENCH_PYTHON ?? "/usr/bin/python3";
const scratch = mkdtempSync(join(tmpdir(), "latentkit-bench-"));

const graph = {
  1: {
    class_type: "ext pipeLoader",
    inputs: {
      ckpt_name: "preview-sd15.safetensors",
      positive: "",
      negative: "",
      batch_size: 1,
      empty_latent_width: 512,
      empty_latent_height: 512,
    },
  },
  2: {
    class_type: "ext latentNoisy",
    inputs: {
      sampler_name: "euler",
      scheduler: "karras",
      steps: 20,
      start_at_step: 0,
      end_at_step: 20,
      source: "CPU",
      seed: 7,
      pipe: ["1", 0],
    },
  },
  3: {
    class_type: "ext injectNoiseToLatent",
    inputs: {
      strength: 0.4,
      normalize: true,
      average: false,
      mix_randn_amount: 0,
      seed: 123,
      latent: ["2", 1],
      noise: ["5", 1],
      pipe_to_noise: ["1", 0],
    },
  },
  5: {
    class_type: "ext latentNoisy",
    inputs: {
      sampler_name: "euler",
      scheduler: "karras",
      steps: 20,
      start_at_step: 0,
      end_at_step: 20,
      source: "CPU",
      seed: 0,
      pipe: ["1", 0],
    },
  },
  4: { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["1", 2] } },
  6: { class_type: "SaveImage", inputs: { images: ["4", 0], filename_prefix: "ours" } },
};

const ours = join(scratch, "ours.mjs");
writeFileSync(
  ours,
  `import { readFileSync } from "node:fs";
  import { batch } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
  const [folder, items, concurrency] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
  const rss = () => Number(/VmRSS:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024;
  let [done, started, early, end] = [0, 0, 0];
  const warm = concurrency * 4;
  const values = Array.from({ length: items + warm }, (_, seed) => ({ "5.seed": seed }));
  const options = { outputDir: folder, journal: folder + "/batch.jsonl", concurrency };
  for await (const event of batch(${JSON.stringify(graph)}, values, options)) {
    if (event.type === "item-failed") throw event.error;
    if (event.type === "item-done") done++;
    if (event.type === "item-done" && done === warm) started = performance.now();
    if (event.type === "item-done" && done === warm + 500) early = rss();
    if (event.type === "item-done" && done === warm + items) end = performance.now();
  }
  console.log(JSON.stringify({ seconds: (end - started) / 1000, failed: 0, early, late: rss() }));`,
);

function onTwoCores() {
  return run(process.execPath, [ours, fresh(), items, 2], {});
}

/** All threads of a process on one core, V8's own included. */
function onOneCore() {
  return run("taskset", ["-c", "0", process.execPath, ours, fresh(), items, 1], {});
}

function torch() {
  const latentRgb = LATENT_RGB.find(({ format: { name } }) => name === "SD15");
  if (latentRgb === undefined) throw new Error("There are no factors for SD15.");
  const { factors, bias, format } = latentRgb;
  const sampling = modelSampling("sd15");
  const setting = {
    factors,
    bias,
    prompt: graph,
    sigma: sampling.sigmaMax / format.scaleFactor,
    scale: 1,
    scaleFactor: format.scaleFactor,
  };
  return run(python, [join(here, "peers/batch.py"), fresh(), items, 2, JSON.stringify(setting)], {});
}

function run(program, args, env) {
  const done = spawnSync(program, args.map(String), { env: { ...process.env, ...env }, encoding: "utf8" });
  if (done.status !== 0)
    return {
      why: `${done.stderr}`
        .trim()
        .split("\n")
        .find((line) => line.includes("Error")),
    };
  const result = JSON.parse(done.stdout);
  if (result.failed !== 0) throw new Error("A process of the peer failed.");
  return result;
}

function fresh() {
  return mkdtempSync(join(scratch, "out-"));
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

try {
  const subjects = {
    "latentkit, 2 cores": onTwoCores,
    "PyTorch and Pillow, 2 processes": torch,
    "latentkit, 1 core": onOneCore,
  };
  const rates = new Map();
  console.log(`${cpus()[0].model}, ${availableParallelism()} processors; ${items} items, medians of ${rounds} rounds`);
  for (let round = 0; round < rounds; round++) {
    for (const [name, subject] of Object.entries(subjects)) {
      const result = subject();
      if (result.why !== undefined) console.log(`${name}: not run (${result.why})`);
      else rates.set(name, [...(rates.get(name) ?? []), items / result.seconds]);
      if (result.late > 0)
        console.log(
          `  ${name}: ${Math.round(result.early)} MB after 500 items, ${Math.round(result.late)} MB at the end`,
        );
    }
  }
  const rate = (name) => (rates.has(name) ? median(rates.get(name)) : Number.NaN);
  for (const name of Object.keys(subjects)) console.log(`${name}: ${rate(name).toFixed(1)} items/s`);
  const [two, peer, one] = Object.keys(subjects).map(rate);
  console.log(
    `two cores / one: ${(two / one).toFixed(2)} (must 1.7); ours / PyTorch and Pillow: ${(two / peer).toFixed(1)} (must 8)`,
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
