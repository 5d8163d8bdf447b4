import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, temporaryFolder } from "../../../helpers/folders.js";

const library = pathToFileURL(join(root, "dist/render/threads/loaded-worker.js")).href;

describe("LoadedWorker", () => {
  const folder = temporaryFolder();

  /** Runs a program that starts a worker whose own program takes a while to load, and writes "loaded" then. */
  const run = (code: string, name = "slow.mjs") => {
    const slow = `
      import { writeSync } from "node:fs";
      const end = Date.now() + 300;
      while (Date.now() < end);
      writeSync(1, "loaded\\n");`;
    writeFileSync(join(folder(), "slow.mjs"), slow);
    const text = `
      import { setTimeout as sleep } from "node:timers/promises";
      import { LoadedWorker } from ${JSON.stringify(library)};
      const worker = new LoadedWorker(new URL(${JSON.stringify(pathToFileURL(join(folder(), name)).href)}), {});
      ${code}`;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", text]);
    return [status, stdout.toString(), stderr.toString()];
  };

  for (const ms of [0, 100, 600]) {
    it(`is loaded before its termination, asked for after ${ms} ms`, () => {
      const code = `await sleep(${ms}); worker.unref(); await worker.terminate(); console.log("ended");`;
      assert.deepEqual(run(code), [0, "loaded\nended\n", ""]);
    });
    it(`is loaded before its process exits, ${ms} ms after its start`, () => {
      assert.deepEqual(run(`await sleep(${ms}); process.exit(7);`), [7, "loaded\n", ""]);
    });
  }

  it("is loaded before its process ends with an uncaught error", () => {
    const [status, stdout, stderr] = run(`worker.unref(); throw new Error("nobody listens");`);
    assert.deepEqual([status, stdout], [1, "loaded\n"]);
    assert.match(String(stderr), /nobody listens/);
  });

  it("holds up no process of its own accord", () => {
    assert.deepEqual(run(`process.exitCode = 3; await sleep(600); worker.unref();`), [3, "loaded\n", ""]);
  });

  it("ends if its program cannot be loaded", () => {
    const code = `
      worker.on("error", ({ code }) => console.log(code));
      worker.on("exit", async () => { await worker.terminate(); console.log("gone"); });`;
    assert.deepEqual(run(code, "none.mjs"), [0, "MODULE_NOT_FOUND\ngone\n", ""]);
  });
});
