import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { filesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { DRIVER, LIBRARY } from "../../helpers/process/fake-gpu.js";

interface Results {
  readonly about: string;
  readonly points: readonly { readonly step: string; readonly state: string; readonly detail: string }[];
}

interface Child {
  runner(
    log: string,
  ): (
    program: string,
    args: readonly string[],
    options: { limit: number },
  ) => Promise<{ code: number | null; signal: string | null; isLate: boolean; error?: string; stdout: string }>;
}

type Judge = (rows: readonly object[]) => string | undefined;

interface Judges {
  readonly differing: Judge;
  readonly unequal: Judge;
  readonly lingering: Judge;
}

describe("scripts/gpu-check", () => {
  const folder = temporaryFolder();

  /** Runs it in its quickest form; the exit code, and what it wrote. */
  async function check(args: readonly string[], env: Record<string, string> = {}) {
    const code = await new Promise<number | null>((resolve, reject) => {
      const script = join(root, "scripts/gpu-check.mjs");
      const child = spawn(process.execPath, [script, "--quick", "--out", folder(), ...args], {
        env: { ...process.env, LATENTKIT_FAKE_CUDA: "", ...env },
        stdio: "ignore",
      });
      child.on("error", reject);
      child.on("close", resolve);
    });
    const { points } = JSON.parse(readFileSync(join(folder(), "results.json"), "utf8")) as Results;
    const states: Record<string, string[]> = {};
    for (const { step, state, detail } of points) {
      states[step] ??= [];
      states[step].push(state === "passed" ? state : `${state}: ${detail}`);
    }
    return { code, states };
  }
  // a Python that is not there: this machine's PyTorch is none of this test's business
  const fake = ["--driver", DRIVER, "--library", LIBRARY, "--python", "/nowhere/python3"];

  it("compares networks with the CPU's, here the CPU itself @long", async function () {
    this.timeout(400_000);
    const args = ["--models", "--provider", "cpu", "--python", "/nowhere/python3", "--seconds", "1160"];
    const { code, states } = await check(args);
    const { torch, ...others } = states;
    const names = ["weights", "trial", "unet", "render", "tiny", "text", "vae", "fold", "kill", "klein", "sdxl"];
    assert.deepEqual(others, Object.fromEntries(names.map((name) => [name, ["passed"]])));
    assert.deepEqual(torch, ["not run: /nowhere/python3 has no PyTorch"]);
    assert.equal(code, 0);
  });

  it("finds networks that differ or copy, pictures that do not repeat, memory that stays", async () => {
    const steps = pathToFileURL(join(root, "scripts/gpu-check/networks/steps.mjs")).href;
    const { differing, unequal, lingering } = (await import(steps)) as Judges;
    const sound = { name: "UNet", difference: 1e-5, elsewhere: { Gather: 3 } };
    assert.equal(differing([{ name: "UNet, cpu" }, sound]), undefined);
    assert.match(differing([{ ...sound, difference: "NaN" }])!, /differs from the CPU by NaN/);
    assert.match(differing([{ ...sound, difference: 2e-4 }])!, /differs/);
    assert.match(differing([{ ...sound, elsewhere: { MemcpyToHost: 1 } }])!, /MemcpyToHost/);
    assert.match(differing([{ name: "UNet, cpu" }])!, /nothing was compared/);
    const [a, b] = [{ sha256: "a" }, { sha256: "b" }];
    assert.equal(unequal([a, b, a]), undefined);
    assert.match(unequal([a, b, b])!, /the same seed gave other bytes/);
    assert.match(unequal([a, a, a])!, /two seeds gave the same/);
    const killed = { isRunning: true, beforeMiB: 10, afterMiB: 20 };
    assert.equal(lingering([killed]), undefined);
    assert.match(lingering([killed, { ...killed, afterMiB: 3000 }])!, /2990 MiB are still taken/);
    assert.match(lingering([{ ...killed, isRunning: false }])!, /had ended/);
  });

  it("passes what the fake driver can show, and names what it cannot @long", async () => {
    const { code, states } = await check([...fake, "--seconds", "280"]);
    const { shapes, bench = [], ...others } = states;
    assert.deepEqual(others, {
      build: [`not run: ${LIBRARY} was given`],
      doctor: ["passed"],
      trial: ["passed"],
      golden: ["passed"],
      noise: ["passed", "not run: spawnSync /nowhere/python3 ENOENT"],
      memcheck: ["not run: the fake driver runs kernels on the CPU"],
      racecheck: ["not run: the fake driver runs kernels on the CPU"],
    });
    assert.equal(code, 0);
    // the C++ programs exist only if they were built
    assert.match(shapes?.join() ?? "", /^passed$|^not run: .* is not built$/);
    assert.match(
      bench.join("\n"),
      /^not run: only small sizes; 7 rows.*\nnot run: ours .* ms; PyTorch is not installed$/,
    );
    assert.deepEqual(filesIn(folder()), ["bench.json", "bench.md", "log.txt", "results.json", "summary.txt"]);
    assert.match(readFileSync(join(folder(), "summary.txt"), "utf8"), /\n[45] passed, 0 failed, [67] not run; /);
  });

  it("reports a device that is lost on the way, step by step @long", async () => {
    const { code, states } = await check([...fake, "--only", "trial", "--only", "doctor"], {
      LATENTKIT_FAKE_CUDA: "fail=lk_scale:700",
    });
    assert.equal(code, 1);
    assert.match(states.trial?.join() ?? "", /^failed: .*(fault|lost)/);
    assert.match(states.doctor?.join() ?? "", /^failed: Device cuda:0 cannot be used: .*failed its check/);
  });

  it("runs nothing without a GPU, and says why", async () => {
    const none = ["--driver", "/nowhere/libcuda.so.1", "--library", LIBRARY];
    const { code, states } = await check([...none, "--only", "trial", "--only", "bench"]);
    assert.equal(code, 1);
    for (const state of [states.trial, states.bench].flat())
      assert.match(state ?? "", /^not run: No CUDA driver was found/);
  });

  it("refuses an unknown step", () => {
    const ran = spawnSync(process.execPath, [join(root, "scripts/gpu-check.mjs"), "--only", "trail"], {
      encoding: "utf8",
      cwd: folder(),
    });
    assert.equal(ran.status, 2);
    assert.match(ran.stderr, /^--only: expected one of build, doctor, trial, .*, received trail\.\n$/);
    assert.deepEqual(filesIn(folder()), []);
  });

  it("ends a program at its limit with all that it started, and carries on", async () => {
    const { runner } = (await import(pathToFileURL(join(root, "scripts/gpu-check/child.mjs")).href)) as Child;
    const run = runner(join(folder(), "log"));
    const beside = join(folder(), "later.mjs");
    writeFileSync(beside, "setInterval(() => {}, 1000);");
    const source = `import { spawn, spawnSync } from "node:child_process";
      spawn(process.execPath, [${JSON.stringify(beside)}], { stdio: "inherit" }); console.log("started");
      setInterval(() => {}, 1000);`;
    // its output stays open until the last of the group has ended
    const late = await run(process.execPath, ["--input-type=module", "-e", source], { limit: 2 });
    assert.deepEqual([late.isLate, late.signal, late.stdout], [true, "SIGKILL", "started\n"]);
    const missing = await run("/nowhere/program", [], { limit: 2 });
    assert.match(missing.error ?? "", /ENOENT/);
    assert.equal((await run(process.execPath, ["-e", "process.exit(3)"], { limit: 60 })).code, 3);
    assert.match(readFileSync(join(folder(), "log"), "utf8"), /ended with its time limit after/);
  });
});
