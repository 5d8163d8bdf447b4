#!/usr/bin/env node
// The Philox stream of the device (LATENTKIT_CUDA, LATENTKIT_CUDA_DRIVER) against the golden files, the native core and
// PyTorch on the same card. Prints the points of gpu-check as JSON.
//   --python FILE   a Python with PyTorch      --quick   a few seeds      --torch-device cpu   to try this program alone
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { golden } from "../../build/test/helpers/tensor/golden.js";
import { openDevice } from "./device.mjs";
import { POINTS } from "./points.mjs";

const { values: options } = parseArgs({
  options: {
    python: { type: "string", default: "python3" },
    quick: { type: "boolean", default: false },
    "torch-device": { type: "string", default: "cuda" },
  },
});
/** PyTorch's own sine and logarithm are a little off, and its grid decides which value lies where. */
const TOLERANCE = 2e-5;
const SEEDS = 50;
const TORCH_SECONDS = 90;

const { native, cuda, handle } = openDevice();
const stored = golden("rng_cuda");

const product = (shape) => shape.reduce((a, b) => a * b, 1);
const sha256 = ({ buffer, byteOffset, byteLength }) =>
  createHash("sha256")
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest("hex");

/** Values of the device and the offset after them. */
function randn(n, seed, offset, threads) {
  const memory = cuda.take(handle, n * Float32Array.BYTES_PER_ELEMENT);
  const next = cuda.philoxRandn(memory, seed, offset, threads, 1);
  const values = new Float32Array(n);
  cuda.download(values, memory);
  cuda.release(memory);
  return { values, next };
}

function words(n, seed, offset, threads) {
  const memory = cuda.take(handle, 4 * n * Uint32Array.BYTES_PER_ELEMENT);
  cuda.philoxWords(memory, seed, offset, threads);
  const bytes = new Uint8Array(16 * n);
  cuda.download(bytes, memory);
  cuda.release(memory);
  return bytes;
}

/** The largest distance; NaN if there is one. */
function distance(actual, expected) {
  if (actual.length !== expected.length) return Number.NaN;
  let largest = 0;
  for (let i = 0; i < actual.length; i++) {
    const apart = Math.abs(actual[i] - expected[i]);
    if (!(apart <= largest)) largest = apart;
  }
  return largest;
}

class Findings {
  worst = 0;
  faults = [];

  /** Within `most` of each other. */
  near(what, actual, expected, most = TOLERANCE) {
    const apart = distance(actual, expected);
    if (!(apart <= this.worst)) this.worst = apart;
    if (!(apart <= most)) this.faults.push(`${what} is off by ${apart}`);
  }
  same(what, actual, expected) {
    if (actual !== expected) this.faults.push(`${what} is ${actual} instead of ${expected}`);
  }
  point(point, detail) {
    const { faults, worst } = this;
    if (faults.length > 0) return { point, state: "failed", detail: `${faults.length} faults, first: ${faults[0]}` };
    return { point, state: "passed", detail: `${detail}; off by ${worst.toExponential(1)} at most` };
  }
}

function againstGolden() {
  const findings = new Findings();
  const threadsOf = ({ threads_cap, profile }) =>
    (threads_cap === undefined ? stored.meta.profiles_threads[profile] : threads_cap) ?? 0;
  for (const c of stored.cases) {
    const [seed, threads] = [BigInt(c.seed), threadsOf(c)];
    if (c.kind === "sequence") {
      let offset = 0n;
      const parts = c.calls.map((n) => {
        const { values, next } = randn(n, seed, offset, threads);
        offset = next;
        return [...values];
      });
      findings.near(c.id, parts.flat(), stored.raw(c.data).data);
      continue;
    }
    const n = product(c.shape);
    const { values, next } = randn(n, seed, 0n, threads);
    if (c.kind === "published_real_gpu_values") {
      // printed with four digits behind the point
      for (const [start, printed] of Object.entries(c.expected))
        for (const [i, value] of printed.entries()) {
          const got = values[Number(start) + i];
          if (!(Math.abs(got - value) <= 6e-5))
            findings.faults.push(`${c.id} at ${start} is ${got}, printed was ${value}`);
        }
      continue;
    }
    findings.near(c.id, c.indices === undefined ? values : c.indices.map((i) => values[i]), stored.raw(c.data).data);
    if (c.u32_sha256 !== undefined)
      findings.same(`words of ${c.id}`, sha256(words(n, seed, 0n, threads)), c.u32_sha256);
    if (c.philox_offset_after === undefined) continue;
    findings.same(`offset after ${c.id}`, next, BigInt(c.philox_offset_after));
    findings.near(`${c.id}, the next 20`, randn(20, seed, next, threads).values, stored.raw(c.next_call_20).data);
  }
  return findings.point(POINTS.philox, `${stored.cases.length} cases, words exact`);
}

/** Seeds of all sizes, counts from one value to several rows of the grid. */
function draws(count) {
  let state = 1n;
  const next = (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & (2n ** 64n - 1n);
    return Number((state >> 33n) % BigInt(below));
  };
  return Array.from({ length: count }, (_, i) => {
    const seed = (BigInt(next(2 ** 31)) << BigInt(next(33))) + BigInt(i);
    const most = i % 5 === 4 ? 3_000_000 : i % 5 === 3 ? 300_000 : 5000;
    return { seed: String(seed), counts: [1 + next(most), 1 + next(999)] };
  });
}

function againstTorch() {
  const point = POINTS.torch;
  const seeds = draws(options.quick ? 5 : SEEDS);
  const folder = mkdtempSync(join(tmpdir(), "latentkit-torch-"));
  try {
    const file = join(folder, "values");
    const script = fileURLToPath(new URL("torch_noise.py", import.meta.url));
    const ran = spawnSync(options.python, ["-B", script, options["torch-device"], file], {
      input: JSON.stringify(seeds),
      encoding: "utf8",
      timeout: TORCH_SECONDS * 1000,
    });
    if (ran.error !== undefined) return { point, state: "not run", detail: ran.error.message };
    // its exit code without PyTorch, or if PyTorch sees no card
    if (ran.status === 3) return { point, state: "not run", detail: ran.stderr };
    if (ran.status !== 0) return { point, state: "failed", detail: ran.stderr.slice(-300) };
    return compareTorch(point, seeds, JSON.parse(ran.stdout), readFileSync(file));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function compareTorch(point, seeds, { version, threads, offsets }, bytes) {
  const findings = new Findings();
  let at = 0;
  for (const [i, { seed, counts }] of seeds.entries()) {
    let offset = 0n;
    for (const n of counts) {
      const { values, next } = randn(n, BigInt(seed), offset, threads);
      const theirs = new Float32Array(bytes.buffer.slice(bytes.byteOffset + at, bytes.byteOffset + at + 4 * n));
      findings.near(`seed ${seed}, ${n} values at offset ${offset}`, values, theirs);
      const ours = new Uint32Array(4 * n);
      native.philoxWords(ours, BigInt(seed), offset, threads);
      findings.same(`words of seed ${seed}`, sha256(words(n, BigInt(seed), offset, threads)), sha256(ours));
      offset = next;
      at += 4 * n;
    }
    if (offsets[i] !== null) findings.same(`offset after seed ${seed}`, offset, BigInt(offsets[i]));
  }
  const sizes = seeds.flatMap(({ counts }) => counts);
  const beyond = sizes.filter((n) => n > threads).length;
  const detail = `PyTorch ${version}, ${seeds.length} seeds, ${sizes.length} calls, ${beyond} beyond the grid of ${threads}, words as on the CPU`;
  return findings.point(point, detail);
}

process.stdout.write(`${JSON.stringify([againstGolden(), againstTorch()])}\n`);
