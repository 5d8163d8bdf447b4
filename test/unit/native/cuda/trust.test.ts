import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type TrustOptions, type TrustQuestion, trustOf } from "#src/native/cuda/trust.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { DRIVER, LIBRARY, runModule } from "../../../helpers/process/fake-gpu.js";

/** Longer than any test may take. */
const HOUR_MS = 3_600_000;

const QUESTION: TrustQuestion = {
  library: LIBRARY,
  driver: DRIVER,
  ordinal: 0,
  driverVersion: "13.0",
  name: "Fake",
  computeCapability: "9.0",
};

/** A library that hands the real one's table on, with the fault that its file name ends in. */
const FAULTY = `
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>
#include "engine_cuda.h"
static engine_cuda_table table;
static const engine_cuda_table *real;
static int fault;
static engine_status wrong_scale(engine_cuda *device, engine_f32 out, engine_cf32 x, float k) {
  return real->scale(device, out, x, k + 1e-7f);
}
static engine_status open_it(const char *driver, int ordinal, engine_cuda **device, char *why, size_t room) {
  if (fault == 1) abort();
  if (fault == 2) for (;;) pause();
  if (fault == 3) for (;;) puts("{\\"trusted\\": true}");
  if (fault == 4) { puts("{\\"trusted\\": true}"); fflush(stdout); _exit(0); }
  if (fault == 5) { snprintf(why, room, "No\\x1b[31m GPU\\n today."); return ENGINE_UNSUPPORTED; }
  return real->open(driver, ordinal, device, why, room);
}
extern "C" __attribute__((visibility("default"))) const engine_cuda_table *latentkit_cuda(void) {
  Dl_info own;
  dladdr(reinterpret_cast<void *>(latentkit_cuda), &own);
  fault = atoi(strrchr(own.dli_fname, '-') + 1);
  void *library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
  real = reinterpret_cast<const engine_cuda_table *(*)(void)>(dlsym(library, "latentkit_cuda"))();
  table = *real;
  table.open = open_it;
  if (fault == 6) table.scale = wrong_scale;
  if (fault == 7) table.abi++;
  return &table;
}
`;

describe("trust in a CUDA library @long", () => {
  const folder = temporaryFolder();
  const cache = () => join(folder(), "cache");
  const ask = (options: TrustOptions = {}, question: Partial<TrustQuestion> = {}) =>
    trustOf({ ...QUESTION, ...question }, { folder: cache(), ...options });
  /** A trial that counts its calls and answers as it is told. */
  const trialOf = (verdict: string) => {
    const trial = join(folder(), "trial.mjs");
    writeFileSync(
      trial,
      `import { appendFileSync, writeFileSync } from "node:fs"; appendFileSync(${JSON.stringify(`${trial}.log`)}, "x"); ${verdict}`,
    );
    return { trial, calls: () => readFileSync(`${trial}.log`, "utf8").length };
  };
  const YES = `writeFileSync(3, '{"trusted":true}');`;

  it("is given if every operation has the processor's bits", () => {
    assert.deepEqual(ask(), { trusted: true });
  });

  it("asks once for each driver, device, library and version of the package", () => {
    const { trial, calls } = trialOf(YES);
    for (let again = 0; again < 3; again++) assert.deepEqual(ask({ trial }), { trusted: true });
    assert.equal(calls(), 1);
    ask({ trial }, { driverVersion: "13.1" });
    ask({ trial }, { name: "Another" });
    ask({ trial }, { computeCapability: "9.1" });
    ask({ trial }, { library: DRIVER });
    assert.equal(calls(), 5);
    // another device of the same kind and the driver's place make no difference
    ask({ trial }, { ordinal: 1, driver: "/elsewhere/libcuda.so.1" });
    assert.equal(calls(), 5);
  });

  it("leaves one private file for each answer, and nothing else", () => {
    const { trial } = trialOf(YES);
    ask({ trial });
    const [name, ...others] = readdirSync(cache());
    assert.match(name!, /^cuda-[0-9a-f]{32}\.json$/);
    assert.deepEqual(others, []);
    assert.equal(statSync(join(cache(), name!)).mode & 0o77, 0);
  });

  it("is refused for an hour, then asked for again", () => {
    const { trial, calls } = trialOf(`writeFileSync(3, '{"trusted":false,"reason":"scale differs."}');`);
    const refusal = { trusted: false, reason: "scale differs." };
    const at = (ms: number) => ask({ trial, now: () => 1e12 + ms });
    assert.deepEqual([at(0), at(3_599_000), calls()], [refusal, refusal, 1]);
    assert.deepEqual([at(3_600_000), calls()], [refusal, 2]);
    // a clock that was set back makes no refusal last
    assert.deepEqual([at(-1), calls()], [refusal, 3]);
  });

  it("does not come from a file that is not plainly an answer", () => {
    const { trial, calls } = trialOf(YES);
    ask({ trial });
    const file = join(cache(), readdirSync(cache())[0]!);
    const good = readFileSync(file, "utf8");
    const other = good.replace("Fake", "Fakf");
    const hostile = ["", "null", "[]", "1", "{", '{"trusted":true}', other, `${good}${" ".repeat(10_000)}`];
    hostile.push(good.replace("true", '"true"'), good.replace("true", "1"));
    for (const [index, text] of hostile.entries()) {
      writeFileSync(file, text);
      assert.deepEqual([ask({ trial }), calls()], [{ trusted: true }, index + 2], text.slice(0, 80));
      assert.match(readFileSync(file, "utf8"), /"trusted":true}$/, "the verdict is written anew");
    }
  });

  it("follows no link and waits for no pipe", () => {
    const { trial, calls } = trialOf(YES);
    ask({ trial });
    const name = readdirSync(cache())[0]!;
    const elsewhere = join(folder(), "elsewhere.json");
    writeFileSync(elsewhere, readFileSync(join(cache(), name)));
    const linked = join(folder(), "linked");
    mkdirSync(linked);
    symlinkSync(elsewhere, join(linked, name));
    assert.deepEqual([ask({ trial, folder: linked }), calls()], [{ trusted: true }, 2]);
    const piped = join(folder(), "piped");
    mkdirSync(piped);
    assert.equal(spawnSync("mkfifo", [join(piped, name)]).status, 0);
    assert.deepEqual([ask({ trial, folder: piped }), calls()], [{ trusted: true }, 3]);
  });

  it("does without a folder that cannot be written", () => {
    const { trial, calls } = trialOf(YES);
    const file = join(folder(), "file");
    writeFileSync(file, "");
    for (let again = 0; again < 2; again++) assert.deepEqual(ask({ trial, folder: file }), { trusted: true });
    assert.equal(calls(), 2);
  });

  describe("asked for by several at once", () => {
    /** A program that asks, in a process or a thread of its own, and prints what it hears. */
    const asking = (trial: string) => `
      import { trustOf } from ${JSON.stringify(import.meta.resolve("#src/native/cuda/trust.js"))};
      console.log(JSON.stringify(trustOf(${JSON.stringify(QUESTION)}, ${JSON.stringify({ folder: cache(), trial })})));
    `;
    const verdictsOf = (source: string) =>
      runModule(source, {}).then(({ code, stdout, stderr }) => {
        assert.deepEqual([code, stderr], [0, ""]);
        return stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as unknown);
      });
    const SLOW = `await new Promise((done) => setTimeout(done, 500)); ${YES}`;
    const lockOf = () => {
      const { trial } = trialOf(YES);
      ask({ trial });
      const name = readdirSync(cache())[0]!;
      rmSync(join(cache(), name));
      return join(cache(), `${name}.lock`);
    };

    it("is one trial for the threads of a process, and for other processes", async () => {
      const { trial, calls } = trialOf(SLOW);
      const threads = `
        import { Worker } from "node:worker_threads";
        const source = new URL("data:text/javascript," + encodeURIComponent(${JSON.stringify(asking(trial))}));
        for (let thread = 0; thread < 4; thread++) new Worker(source);
      `;
      const verdicts = await Promise.all([verdictsOf(threads), verdictsOf(asking(trial)), verdictsOf(asking(trial))]);
      assert.deepEqual(verdicts.flat(), new Array(6).fill({ trusted: true }));
      assert.equal(calls(), 1);
      assert.equal(readdirSync(cache()).length, 1);
    });

    it("hears a refusal too", async () => {
      const { trial, calls } = trialOf(SLOW.replace('"trusted":true', '"trusted":false,"reason":"it differs."'));
      const verdicts = await Promise.all([verdictsOf(asking(trial)), verdictsOf(asking(trial))]);
      assert.deepEqual(verdicts.flat(), new Array(2).fill({ trusted: false, reason: "it differs." }));
      assert.equal(calls(), 1);
    });

    it("goes on if the one that tried was killed", async () => {
      const { trial, calls } = trialOf(`await new Promise((done) => setTimeout(done, 30_000));`);
      const child = spawn(process.execPath, ["--input-type=module", "-e", asking(trial)]);
      while (!existsSync(`${trial}.log`)) await delay(10);
      assert.equal(readdirSync(cache()).filter((name) => name.endsWith(".lock")).length, 1);
      child.kill("SIGKILL");
      await once(child, "close");
      assert.deepEqual(ask({ trial: trialOf(YES).trial, timeoutMs: HOUR_MS }), { trusted: true });
      assert.equal(calls(), 2);
      assert.equal(readdirSync(cache()).length, 1);
    });

    it("waits no longer than a trial may take", () => {
      const lock = lockOf();
      writeFileSync(lock, String(process.pid));
      const { trial, calls } = trialOf(YES);
      const started = performance.now();
      assert.deepEqual(ask({ trial, timeoutMs: 5000 }), { trusted: true });
      assert.ok(performance.now() - started > 6000);
      assert.deepEqual([calls(), existsSync(lock)], [2, false]);
    });

    it("does not wait for anything but a lock, and leaves it alone", () => {
      const lock = lockOf();
      const { trial } = trialOf(YES);
      const makers: (() => void)[] = [
        () => mkdirSync(lock),
        () => symlinkSync(join(folder(), "elsewhere"), lock),
        () => void spawnSync("mkfifo", [lock]),
        () => writeFileSync(lock, "x".repeat(33)),
      ];
      for (const make of makers) {
        make();
        assert.deepEqual(ask({ trial, timeoutMs: HOUR_MS }, { name: QUESTION.name }), { trusted: true });
        assert.equal(lstatSync(lock, { throwIfNoEntry: false }) !== undefined, true);
        assert.deepEqual(existsSync(join(folder(), "elsewhere")), false);
        rmSync(lock, { recursive: true });
        rmSync(lock.replace(/\.lock$/, ""));
      }
    });
  });

  describe("is refused to a library", () => {
    const refusals: [fault: number, what: string, reason: RegExp][] = [
      [1, "that crashes", /^the check crashed \(SIGABRT\)\.$/],
      [2, "that never answers", /^the check did not finish within 1\.5 s\.$/],
      [3, "that talks without end", /^the check did not finish within 1\.5 s\.$/],
      [4, "that ends the process, whatever it says", /^the check returned no result\.$/],
      [5, "that does not open, in words fit for a terminal", /^No\?\[31m GPU\? today\.$/],
      [6, "with wrong bits", /^scale of 1 differs from the CPU's result: value 0 is \S+ instead of \S+\.$/],
      [7, "of another version", /belongs to another version/],
    ];
    for (const [fault, what, reason] of refusals) {
      it(what, () => {
        const verdict = ask({ timeoutMs: fault === 2 || fault === 3 ? 1500 : undefined }, { library: faulty(fault) });
        assert.equal(verdict.trusted, false);
        assert.match(verdict.reason!, reason);
      });
    }

    it("that is none", () => {
      const library = join(folder(), "none.so");
      writeFileSync(library, "no library");
      assert.match(ask({}, { library }).reason!, /none\.so/);
    });
  });

  it("is refused if a trial answers without end", () => {
    const { trial } = trialOf(`for (;;) writeFileSync(3, '{"trusted":true}');`);
    assert.deepEqual(ask({ trial }), { trusted: false, reason: "the check failed (ENOBUFS)." });
  });

  let compiled: Buffer | undefined;

  function faulty(fault: number): string {
    const library = join(folder(), `faulty-${fault}.so`);
    compiled ??= compileFaulty();
    writeFileSync(library, compiled);
    return library;
  }

  function compileFaulty(): Buffer {
    const [source, library] = [join(folder(), "faulty.cpp"), join(folder(), "compiled.so")];
    writeFileSync(source, FAULTY);
    // a sanitizer loaded into this process is none of the compiler's business
    const { LD_PRELOAD: _, ...env } = process.env;
    const flags = ["-shared", "-fPIC", "-std=gnu++20", "-Inative/include", `-DREAL="${LIBRARY}"`];
    const done = spawnSync("c++", [...flags, "-o", library, source, "-ldl"], { encoding: "utf8", env });
    assert.equal(done.status, 0, done.stderr);
    return readFileSync(library);
  }
});
