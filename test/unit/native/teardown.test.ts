import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";

const LOADER = JSON.stringify(import.meta.resolve("#src/native/load.js"));

/** Encodings of some 100 ms each, started and not awaited. */
const JOBS = `
  const { loadNative } = await import(${LOADER});
  const native = loadNative();
  const pixels = new Uint8Array(1500 * 1500 * 3).map((_, i) => (i * i) >> 7);
  const start = () => native.encodePng(pixels, 1500, 1500, 3, 9, []);
  const jobs = [start(), start(), start(), start()];
`;

/** Runs \`body\` \`times\` in one worker after the other, each ended after \`ms\`. */
const inWorkers = (body: string, times: number, ms: number) => `
  import { Worker } from "node:worker_threads";
  import { setTimeout } from "node:timers/promises";
  for (let k = 0; k < ${times}; k++) {
    const worker = new Worker(new URL("data:text/javascript," + ${JSON.stringify(encodeURIComponent(body))}));
    worker.on("error", (error) => { console.error(error); process.exit(9); });
    await Promise.race([new Promise((resolve) => worker.on("message", resolve).on("exit", resolve)), setTimeout(${ms} + 20 * k, null, { ref: false })]);
    await worker.terminate();
  }
`;

/** Runs a module in a process of its own. */
function runProgram(source: string) {
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" });
  return { status: done.status, signal: done.signal, stdout: done.stdout, stderr: done.stderr };
}

const quiet = (status: number, stdout = "") => ({ status, signal: null, stdout, stderr: "" });

describe("native module at the end of a thread or process", () => {
  it("keeps the process alive until a job is done", () => {
    const program = `${JOBS} Promise.all(jobs).then((files) => console.log(files.length));`;
    assert.deepEqual(runProgram(program), quiet(0, "4\n"));
  });

  it("does not keep the process alive without jobs", () => {
    const program = `${JOBS} await Promise.all(jobs);`;
    assert.deepEqual(runProgram(program), quiet(0));
  });

  it("survives process.exit in the middle of jobs", () => {
    assert.deepEqual(runProgram(`${JOBS} process.exit(7);`), quiet(7));
    assert.deepEqual(runProgram(`${JOBS} setTimeout(() => process.exit(7), 60);`), quiet(7));
  });

  it("survives an uncaught error in the middle of jobs", () => {
    const done = runProgram(`${JOBS} throw new Error("on purpose");`);
    assert.deepEqual([done.status, done.signal], [1, null]);
    assert.match(done.stderr, /on purpose/);
  });

  it("survives workers that are terminated in the middle of jobs @long", () => {
    const after = `${JOBS} console.log((await Promise.all(jobs)).length);`;
    assert.deepEqual(runProgram(`${inWorkers(JOBS, 6, 120)} ${after}`), quiet(0, "4\n"));
  });

  it("survives when only a worker had loaded it, and its jobs outlive the worker", () => {
    const loaded = `${JOBS} (await import("node:worker_threads")).parentPort.postMessage("started");`;
    assert.deepEqual(runProgram(`${inWorkers(loaded, 2, 10_000)} await setTimeout(700);`), quiet(0));
  });

  it("survives a worker that exits by itself in the middle of jobs @long", () => {
    assert.deepEqual(runProgram(`${inWorkers(`${JOBS} process.exit(0);`, 3, 300)} await setTimeout(300);`), quiet(0));
  });

  it("survives computing on the pool in workers that are terminated", () => {
    const loop = `
      const { loadNative } = await import(${LOADER});
      const native = loadNative();
      const x = new Float32Array(1 << 20);
      for (;;) { native.scale(x, x, 1.5); await null; }
    `;
    assert.deepEqual(runProgram(inWorkers(loop, 5, 40)), quiet(0));
  });

  it("works in several workers at once @long", () => {
    const workerSource = `
      ${JOBS}
      const sizes = (await Promise.all(jobs)).map((file) => file.length);
      (await import("node:worker_threads")).parentPort.postMessage(sizes.join());
    `;
    const program = `
      import { Worker } from "node:worker_threads";
      const url = new URL("data:text/javascript," + ${JSON.stringify(encodeURIComponent(workerSource))});
      const replies = [1, 2, 3].map(() => new Promise((resolve, reject) => {
        new Worker(url).on("message", resolve).on("error", reject);
      }));
      console.log(new Set(await Promise.all(replies)).size);
    `;
    assert.deepEqual(runProgram(program), quiet(0, "1\n"));
  });
});
