import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { nativeFile } from "#src/native/load.js";
import type { Ran } from "./cli.js";

const BUILT = join(dirname(nativeFile()), "cuda-test");

/** The CUDA library, and a driver that runs its kernels on the processor; scripts/setup.mjs --tests builds both. */
export const LIBRARY = join(BUILT, "latentkit_cuda.so");
export const DRIVER = join(BUILT, "libcuda-fake.so");

/** Verdicts of trials, shared by the tests of this process: one that has its verdict is not tried again. */
const cache = mkdtempSync(join(tmpdir(), "latentkit-trust-"));
process.on("exit", () => rmSync(cache, { recursive: true, force: true }));

/** The environment of a process that finds the library and the fake driver; `settings` as test/native/cuda/fake/fake.h. */
export function fakeGpu(settings = "", more: Record<string, string> = {}): Record<string, string> {
  return {
    LATENTKIT_CUDA: LIBRARY,
    LATENTKIT_CUDA_DRIVER: DRIVER,
    LATENTKIT_CACHE_DIR: cache,
    LATENTKIT_FAKE_CUDA: settings,
    LATENTKIT_DEVICE: "cuda:0",
    ...more,
  };
}

/**
 * Beginning of every program below: `counted` returns counts of the driver, `send` sends a value to the test. By
 * `require`, which takes half the time of `import` in Node 20.
 */
const PRELUDE = `
  import { createRequire } from "node:module";
  const load = createRequire(${JSON.stringify(import.meta.url)});
  const latentkit = load("latentkit");
  const ops = load("#src/tensor/ops.js");
  const { withDevice } = load("#src/tensor/device/device.js");
  const { openCuda } = load("#src/native/cuda/cuda.js");
  const { loadNative } = load("#src/native/load.js");
  const { Tensor, randn, createGenerator, executeGraph, render, LatentkitError } = latentkit;
  const driver = load("koffi").load(process.env.LATENTKIT_CUDA_DRIVER);
  const count = driver.func("uint64_t fake_cuda_count(const char *what)");
  const counted = (...names) => names.map((name) => Number(count(name)));
  const bits = (tensor) => Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength).toString("base64");
  const send = (value) => console.log(JSON.stringify(value));
  const warnings = [];
  process.on("warning", ({ code, message }) => code === "LATENTKIT_DEVICE" && warnings.push(message));
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const refused = (work) => { try { return String(work()); } catch (error) { return [error.code ?? error.status, error.message]; } };
`;

/** Our own warnings, which programs send as values, and AddressSanitizer's about the fake driver's fibers. */
const EXPECTED_WORDS =
  /^.*LATENTKIT_DEVICE.*\n|^\(Use `node --trace.*\n|^==\d+==WARNING: ASan doesn't fully support .*\n/gm;

/** Done once, by a driver without faults. */
let trial: Promise<Ran> | undefined;

/** Runs a module in its own process, which must end well; returns the values that it sent. */
export async function onFakeGpu(source: string, env: Record<string, string> = fakeGpu()): Promise<unknown[]> {
  trial ??= runModule(`${PRELUDE} send(openCuda(0).reason ?? "trusted");`, fakeGpu());
  assert.deepEqual(await trial, { code: 0, stdout: '"trusted"\n', stderr: "" });
  const ran = await runModule(PRELUDE + source, env);
  assert.deepEqual([ran.code, ran.stderr.replaceAll(EXPECTED_WORDS, "")], [0, ""]);
  return ran.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

export function runModule(source: string, env: Record<string, string>): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ran: Ran = { code: null, stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      ran.stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      ran.stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ ...ran, code }));
  });
}
