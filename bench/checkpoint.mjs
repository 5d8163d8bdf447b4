#!/usr/bin/env node
// Stable Diffusion 1 on the CPU: calls of the UNet at cfg 7, folded and streamed, decodes of the VAE, and whole cold renders
// of 4 steps, beside PyTorch in float32 and bfloat16 on the same cores, in turn. The time, and the processor's time, which
// other programs on the computer disturb less (Linux), as ratios; and the machine's limit, a product of matrices by ONNX
// Runtime. The weights are random; outputs are compared.
//   node bench/checkpoint.mjs [--side 256] [--rounds 5] [--threads N] [--model FILE]
// FILE is a checkpoint; scripts/make-full-size-model.mjs writes one where absent, 2.1 GB. BENCH_PYTHON names an interpreter
// with PyTorch 2, Debian's where absent.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { randn, Tensor } from "latentkit";
import { InferenceSession, Tensor as OnnxTensor } from "onnxruntime-node";
import { recogniseCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import { createRuntime } from "#src/host/checkpoint/runtime/client.js";
import { ModelPart } from "#src/host/checkpoint/session/model-part.js";
import { buildUnet } from "#src/host/checkpoint/unet/build.js";
import { BuiltVae } from "#src/host/checkpoint/vae/model.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";

const PIXELS_OF_CELL = 8;
const STEPS = 4;
/** Side of the square matrices whose product is the limit. */
const PRODUCT = 2048;
/** Largest difference from the first subject in float32, relative to its largest value; that of bfloat16 is only told. */
const MOST_DIFFERENCE = 1e-3;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { values: options } = parseArgs({
  options: {
    side: { type: "string", default: "256" },
    rounds: { type: "string", default: "5" },
    threads: { type: "string", default: String(availableParallelism()) },
    model: { type: "string" },
  },
});
const threads = Number(options.threads);
const cells = Number(options.side) / PIXELS_OF_CELL;
const scratch = mkdtempSync(join(tmpdir(), "latentkit-checkpoint-"));
const ending = [];
try {
  const model = resolve(options.model ?? join(scratch, "sd1.safetensors"));
  if (options.model === undefined)
    execFileSync(process.execPath, [here("../scripts/make-full-size-model.mjs"), "sd1", model]);
  const x = randn([2, 4, cells, cells], { seed: 1 });
  const context = randn([2, 77, 768], { seed: 2 });
  const z = randn([1, 4, cells, cells], { seed: 3 });
  for (const [name, { data }] of Object.entries({ x, context, z })) writeFileSync(join(scratch, `${name}.bin`), data);
  const [unet, vae] = [await unetCalls(), await vaeCalls()];
  const torch = [await pytorch("float32"), await pytorch("bfloat16")].filter((peer) => peer !== undefined);
  const withPeers = (own, work) => ({
    ...own,
    ...Object.fromEntries(torch.map(({ name, call }) => [name, () => call(work)])),
  });
  console.log(
    `${cpus()[0].model}, ${threads} threads, load ${loadavg()[0].toFixed(1)}, ${options.side} x ${options.side}`,
  );
  console.log(`limit: ${((2 * PRODUCT ** 3) / (await product()) / 1e6).toFixed(0)} GF/s, a product of ${PRODUCT}^3`);
  await compare("UNet, both prompts", withPeers(unet, "unet"));
  await compare("VAE decode", withPeers(vae, "vae"));
  for (const end of ending.splice(0)) await end();
  await compare(`a cold render of ${STEPS} steps`, coldRenders());

  async function parts(plan) {
    const file = await openModelFile({ name: "sd1", path: model });
    const found = await recogniseCheckpoint(file, readValues);
    if (found.network.what !== "UNet" || found.vae === undefined) throw new Error(`${model} has no UNet or no VAE`);
    const runtime = createRuntime({ plan, threads, device: "cpu" });
    ending.push(() => runtime.close());
    const part = ({ config, weights }, label) => new ModelPart(label, file, /** @type {any} */ (config), weights);
    const timed = (call) => async () => {
      const [start, before] = [performance.now(), cpuMs(runtime.describe().processId)];
      const { data } = await call();
      const ms = performance.now() - start;
      return { ms, cpu: cpuMs(runtime.describe().processId) - before, out: data };
    };
    return { runtime, timed, unet: part(found.network.part, "UNet"), vae: part(found.vae, "VAE") };
  }

  async function unetCalls() {
    const calls = {};
    for (const plan of ["fold", "stream"]) {
      const { runtime, timed, unet: part } = await parts(plan);
      const session = part.session("UNet", (network, config) => buildUnet(network, config));
      const feeds = { x, context, timestep: Tensor.full([2], 500) };
      calls[`latentkit, ${plan}`] = timed(async () => (await runtime.run(session, feeds, { keep: ["context"] })).out);
    }
    return calls;
  }

  async function vaeCalls() {
    const { runtime, timed, vae: part } = await parts();
    const decoder = new BuiltVae(runtime, { kind: "vae", part });
    return { latentkit: timed(() => decoder.decode(z)) };
  }

  /** A peer; undefined where it is not installed. */
  async function pytorch(type) {
    const program = process.env.BENCH_PYTHON ?? "/usr/bin/python3";
    const args = ["-B", here("peers/checkpoint.py"), model, scratch, options.threads, String(cells), type];
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
    child.on("error", () => {});
    child.stdin.on("error", () => {});
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    ending.push(() => child.kill());
    const first = await lines.next();
    if (first.done) return undefined;
    const call = async (work) => {
      const before = cpuMs(child.pid);
      child.stdin.write(`${work}\n`);
      const { value } = await lines.next();
      const { buffer, byteOffset, byteLength } = readFileSync(join(scratch, "out.bin"));
      const out = new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
      return { ...JSON.parse(value), cpu: cpuMs(child.pid) - before, out, type };
    };
    return { name: `PyTorch ${JSON.parse(first.value).version}, ${type}`, call };
  }

  /** The command line, whose processes end each time; the time of a process that is killed is not known. */
  function coldRenders() {
    const models = join(scratch, "models");
    mkdirSync(join(models, "checkpoints"), { recursive: true });
    symlinkSync(model, join(models, "checkpoints", "sd1.safetensors"));
    const graph = join(scratch, "graph.json");
    writeFileSync(graph, JSON.stringify(graphOf(Number(options.side))));
    const args = ["render", graph, "--models", models, "--out", join(scratch, "out"), "--models-device", "cpu"];
    return {
      latentkit: () => {
        const start = performance.now();
        const { status, stderr } = spawnSync(process.execPath, [here("../bin/latentkit.mjs"), ...args]);
        if (status !== 0) throw new Error(String(stderr));
        return { ms: performance.now() - start };
      },
    };
  }

  /** Milliseconds of a product of two matrices. */
  async function product() {
    const graph = new OnnxGraph("product");
    const a = graph.input("a", "float", [PRODUCT, PRODUCT]);
    graph.output(graph.node("MatMul", [a, a]), "y", "float", [PRODUCT, PRODUCT]);
    const { bytes } = graph.encode({ overridable: false });
    const session = await InferenceSession.create(bytes, { intraOpNumThreads: threads });
    const feeds = { a: new OnnxTensor("float32", randn([PRODUCT, PRODUCT], { seed: 1 }).data, [PRODUCT, PRODUCT]) };
    const times = [];
    for (let round = 0; round < 5; round++) {
      const start = performance.now();
      await session.run(feeds);
      times.push(performance.now() - start);
    }
    await session.release();
    return Math.min(...times);
  }
} finally {
  for (const end of ending) await end();
  rmSync(scratch, { recursive: true });
}

/** Runs subjects in turn, and prints their medians, and ratios to the first one. */
async function compare(work, subjects) {
  const times = new Map();
  let expected;
  for (let round = 0; round <= Number(options.rounds); round++)
    for (const [name, call] of Object.entries(subjects)) {
      const { ms, cpu, out, type = "float32" } = await call();
      let differs = "";
      if (out !== undefined) {
        expected ??= out;
        const most = expected.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
        const difference =
          out.reduce((largest, value, i) => Math.max(largest, Math.abs(value - expected[i])), 0) / most;
        differs = `, differs by ${difference.toExponential(1)}`;
        if (type === "float32" && !(difference <= MOST_DIFFERENCE)) throw new Error(`${work}, ${name}${differs}.`);
      }
      // the first one loads, or reads the file
      if (round === 0) console.log(`${work}, ${name}: first ${both({ ms, cpu })}${differs}`);
      else times.set(name, [...(times.get(name) ?? []), { ms, cpu }]);
    }
  const medians = [...times].map(([name, list]) => [name, { ms: median(list, "ms"), cpu: median(list, "cpu") }]);
  for (const [name, own] of medians) {
    const [, first] = medians[0];
    const ofProcessors = own.cpu === undefined ? "" : `, ${(own.cpu / first.cpu).toFixed(2)} by processors`;
    const ratio = `${(own.ms / first.ms).toFixed(2)} times the first${ofProcessors}`;
    console.log(`${work}, ${name}: ${both(own)}, ${ratio}`);
  }
}

function graphOf(side) {
  const node = (class_type, inputs) => ({ class_type, inputs });
  return {
    1: node("CheckpointLoaderSimple", { ckpt_name: "sd1.safetensors" }),
    2: node("CLIPTextEncode", { text: "a lake at dawn", clip: ["1", 1] }),
    3: node("CLIPTextEncode", { text: "blurry", clip: ["1", 1] }),
    4: node("EmptyLatentImage", { width: side, height: side, batch_size: 1 }),
    5: node("KSampler", {
      model: ["1", 0],
      positive: ["2", 0],
      negative: ["3", 0],
      latent_image: ["4", 0],
      seed: 1,
      steps: STEPS,
      cfg: 7,
      sampler_name: "euler",
      scheduler: "normal",
      denoise: 1,
    }),
    6: node("VAEDecode", { samples: ["5", 0], vae: ["1", 2] }),
    7: node("SaveImage", { images: ["6", 0], filename_prefix: "cold" }),
  };
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(2)} s`;
}

function both({ ms, cpu }) {
  return cpu === undefined ? seconds(ms) : `${seconds(ms)} (${seconds(cpu)} of processors)`;
}

function median(list, field) {
  const sorted = list.map((entry) => entry[field]).toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

/** Processor time of a process, in ms; 0 before it is there, and where there is no /proc. */
function cpuMs(id) {
  if (id === undefined || !existsSync(`/proc/${id}/stat`)) return 0;
  // after the program's name, which may hold blanks: fields 14 and 15 in ticks of 10 ms
  const fields = String(readFileSync(`/proc/${id}/stat`, "utf8").split(") ").at(-1)).split(" ");
  return 10 * (Number(fields[11]) + Number(fields[12]));
}
