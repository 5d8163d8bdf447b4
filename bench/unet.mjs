#!/usr/bin/env node
// A call of Stable Diffusion 1's UNet, two items of 64 x 64, folded and streamed, beside PyTorch in float32 on the same
// cores, in turn: the time, and the processor's time, which other programs on the computer disturb less (Linux). The weights
// are random, and all three outputs are compared.
//   node bench/unet.mjs [--rounds 5] [--threads N] [--model FILE]
// FILE is a checkpoint; scripts/make-full-size-model.mjs writes one if absent, 2.1 GB. BENCH_PYTHON names an interpreter
// with PyTorch 2, Debian's if absent.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { randn, Tensor } from "latentkit";
import { recogniseCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import { createRuntime } from "#src/host/checkpoint/runtime/client.js";
import { ModelPart } from "#src/host/checkpoint/session/model-part.js";
import { buildUnet } from "#src/host/checkpoint/unet/build.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";

const CALLS_OF_A_RUN = 20;
const MOST_DIFFERENCE = 1e-4;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    threads: { type: "string", default: String(availableParallelism()) },
    model: { type: "string" },
  },
});
const threads = Number(options.threads);
const scratch = mkdtempSync(join(tmpdir(), "latentkit-unet-"));
const runtimes = [];
try {
  const model = options.model ?? join(scratch, "sd1.safetensors");
  if (options.model === undefined)
    execFileSync(process.execPath, [here("../scripts/make-full-size-model.mjs"), "sd1", model]);
  const x = randn([2, 4, 64, 64], { seed: 1 });
  const context = randn([2, 77, 768], { seed: 2 });
  for (const [name, { data }] of Object.entries({ x, context })) writeFileSync(join(scratch, `${name}.bin`), data);
  const subjects = {
    "latentkit, fold": await ours("fold"),
    "latentkit, stream": await ours("stream"),
    ...(await peers()),
  };

  async function ours(plan) {
    const file = await openModelFile({ name: "sd1", path: model });
    const { network } = await recogniseCheckpoint(file, readValues);
    if (network.what !== "UNet") throw new Error(`${model} has no UNet`);
    const part = new ModelPart("UNet", file, /** @type {any} */ (network.part.config), network.part.weights);
    const session = part.session("UNet", (graph, config) => buildUnet(graph, config));
    const runtime = createRuntime({ plan, threads });
    runtimes.push(runtime);
    const feeds = { x, context, timestep: Tensor.full([2], 500) };
    return async () => {
      const [start, before] = [performance.now(), cpuMs(runtime.describe().processId)];
      const { out } = await runtime.run(session, feeds, { keep: ["context"], calls: CALLS_OF_A_RUN });
      const ms = performance.now() - start;
      return { ms, cpu: cpuMs(runtime.describe().processId) - before, out: out.data };
    };
  }

  async function peers() {
    const program = process.env.BENCH_PYTHON ?? "/usr/bin/python3";
    const args = ["-B", here("peers/unet.py"), model, scratch, options.threads];
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
    child.on("error", () => {});
    child.stdin.on("error", () => {});
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    runtimes.push({ close: () => child.kill() });
    const first = await lines.next();
    if (first.done) return {};
    const call = async () => {
      const before = cpuMs(child.pid);
      child.stdin.write("\n");
      const { value } = await lines.next();
      return { ...JSON.parse(value), cpu: cpuMs(child.pid) - before, out: outOf() };
    };
    return { [`PyTorch ${JSON.parse(first.value).version}`]: call };
  }

  function outOf() {
    const { buffer, byteOffset, length } = readFileSync(join(scratch, "out.bin"));
    return new Float32Array(buffer.slice(byteOffset, byteOffset + length));
  }

  console.log(`${cpus()[0].model}, ${threads} threads, load ${loadavg()[0].toFixed(1)}`);
  const times = new Map();
  let expected;
  for (let round = 0; round <= Number(options.rounds); round++) {
    for (const [name, call] of Object.entries(subjects)) {
      const { ms, cpu, out } = await call();
      expected ??= out;
      const difference = out.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i])), 0);
      if (!(difference <= MOST_DIFFERENCE)) throw new Error(`${name} differs by ${difference}.`);
      // the first call loads
      if (round === 0) console.log(`${name}: first call ${seconds(ms)}, differs by ${difference.toExponential(1)}`);
      else times.set(name, [...(times.get(name) ?? []), { ms, cpu }]);
    }
    const latest = [...times].map(([name, list]) => `${name} ${both(list.at(-1))}`);
    if (round > 0) console.log(`  round ${round}: ${latest.join(", ")}`);
  }
  for (const [name, list] of times) {
    console.log(`${name}: median ${both({ ms: median(list, "ms"), cpu: median(list, "cpu") })} a call`);
  }
} finally {
  for (const runtime of runtimes) await runtime.close();
  rmSync(scratch, { recursive: true });
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(2)} s`;
}

function both({ ms, cpu }) {
  return `${seconds(ms)} (${seconds(cpu)} of processors)`;
}

function median(list, field) {
  const sorted = list.map((entry) => entry[field]).toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

/** Processor time of a process, in ms; 0 before it exists, and without /proc. */
function cpuMs(id) {
  if (id === undefined || !existsSync(`/proc/${id}/stat`)) return 0;
  // after the program's name, which may hold blanks: fields 14 and 15 in ticks of 10 ms
  const fields = String(readFileSync(`/proc/${id}/stat`, "utf8").split(") ").at(-1)).split(" ");
  return 10 * (Number(fields[11]) + Number(fields[12]));
}
