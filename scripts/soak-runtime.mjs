#!/usr/bin/env node
// Kills the process of ONNX Runtime at random moments, while it starts, loads, runs and waits: the run under way must fail
// with one sentence, or be done, the next one must work, and memory must come back. Usage: soak-runtime.mjs [KILLS]
import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { OnnxGraph } from "../dist/host/checkpoint/onnx/graph.js";
import { createRuntime } from "../dist/host/checkpoint/runtime/client.js";
import { networkOf } from "../dist/host/checkpoint/weights/network.js";
import { Tensor } from "../dist/tensor/tensor.js";
import { residentMb } from "./resident-mb.mjs";

const kills = Number(process.argv[2] ?? 50);
const SIDE = 2048;
const LAYERS = 24;
/** Bytes of a weight as F16. */
const WEIGHT_BYTES = SIDE * SIDE * 2;
/** Weights of a network as float32. */
const MEGABYTES = (LAYERS * SIDE * SIDE * 4) / 2 ** 20;
const MOST_IDLE_MB = 250;

const folder = mkdtempSync(join(tmpdir(), "latentkit-soak-"));
const file = join(folder, "weights");
const handle = openSync(file, "w");
for (let i = 0; i < LAYERS; i++) {
  // numbers between 2^-6 and 2^-5: pages of zeros would not count
  const halves = Uint16Array.from({ length: SIDE * SIDE }, (_, k) => 0x2400 | (((k + i) * 2_654_435_761) >>> 22));
  writeSync(handle, new Uint8Array(halves.buffer));
}
closeSync(handle);

/**
 * A network of linear layers, 100 million parameters.
 *
 * @param {string} key
 * @returns {import("../dist/host/checkpoint/session/sessions.js").SessionSource}
 */
const source = (key) => ({
  key,
  label: `network ${key}`,
  parameters: LAYERS * SIDE * SIDE,
  fileBytes: LAYERS * WEIGHT_BYTES,
  make(plan) {
    const shape = [SIDE, SIDE];
    const weights = Array.from({ length: LAYERS }, (_, i) => {
      const from = i * WEIGHT_BYTES;
      return /** @type {const} */ ([
        String(i),
        { file, key: String(i), dtype: "F16", shape, from, to: from + WEIGHT_BYTES },
      ]);
    });
    const network = networkOf(new OnnxGraph(key, undefined, plan === "stream"), new Map(weights));
    let x = network.graph.input("x", "float", ["rows", SIDE]);
    for (const [name] of weights) {
      const product = network.graph.node("MatMul", [x, network.weight(name, shape)]);
      x = network.graph.node("Sin", [product]);
    }
    network.graph.output(x, "y", "float", ["rows", SIDE]);
    return network.graph.encode({ overridable: plan === "stream" });
  },
});

/** @param {number} id */
const anonymousMb = (id) => Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1]) / 1024;

const outcomes = { failed: 0, done: 0 };
try {
  const runtime = createRuntime({ threads: 2, plan: "fold" });
  const x = Tensor.full([64, SIDE], 1 / SIDE);
  const start = performance.now();
  const expected = (await runtime.run(source("0"), { x })).y?.data;
  // the first run starts the process, too
  const longestMs = performance.now() - start;
  const before = residentMb(process.pid);
  for (let i = 0; i < kills; i++) {
    const key = String(i % 3);
    const under = runtime.run(source(key), { x }, { keep: ["x"] }).then(
      () => "done",
      (error) => {
        assert.equal(error.code, "runtime.failed");
        assert.match(error.message, /SIGKILL/);
        return "failed";
      },
    );
    await sleep(Math.random() * longestMs);
    const { processId } = runtime.describe();
    if (processId !== undefined) process.kill(processId, "SIGKILL");
    outcomes[/** @type {"done" | "failed"} */ (await under)]++;
    const { y } = await runtime.run(source(key), { x }, { keep: ["x"] });
    assert.deepEqual(y?.data, expected);
  }
  const growth = residentMb(process.pid) - before;
  process.stdout.write(`${kills} kills: ${outcomes.failed} runs failed, ${outcomes.done} were done; `);
  process.stdout.write(`this process grew by ${growth.toFixed(0)} MB.\n`);
  assert.ok(outcomes.failed > 0);
  assert.ok(growth < MOST_IDLE_MB);
  await runtime.close();
  await memoryReturns();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** One folded network after the other, each of which takes the place of the one before. */
async function memoryReturns() {
  let largest = 0;
  /** @type {number[]} */
  const after = [];
  const runtime = createRuntime({ threads: 2, plan: "fold", memory: LAYERS * SIDE * SIDE * 4 * 1.2 });
  const x = Tensor.full([64, SIDE], 1 / SIDE);
  for (let i = 0; i < 6; i++) {
    await runtime.run(source(String(i % 2)), { x });
    const id = Number(runtime.describe().processId);
    largest = Math.max(largest, anonymousMb(id));
    after.push(anonymousMb(id));
  }
  process.stdout.write(
    `Memory of the child with one of two networks: ${after.map((mb) => mb.toFixed(0)).join(", ")} MB`,
  );
  process.stdout.write(` (each has ${MEGABYTES} MB as float32).\n`);
  assert.ok(largest < MEGABYTES * 1.25);
  await runtime.close();
}
