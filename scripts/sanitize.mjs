#!/usr/bin/env node
// Runs the C++ tests and the module's tests under AddressSanitizer and UBSan; those of the pool, of the codec and the
// noise on it, and of threads that share a GPU under ThreadSanitizer.
// Needs Linux, g++ and compiled tests (npm test makes them).
import { execFileSync, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { buildNative } from "./native-build.mjs";
import { root } from "./setup.mjs";

const JOBS = String(availableParallelism());
const POOL_TESTS = ["runtime_test", "brownian_test", "deflate_test", "png_test", "cuda-threads_test"];

underAddressSanitizer();
underThreadSanitizer();

function underAddressSanitizer() {
  const module = buildNative({ sanitize: "address", tests: true });
  run("C++ tests, ASan and UBSan", "ctest", [
    "--test-dir",
    join(root, "build/address"),
    "--output-on-failure",
    "--parallel",
    JOBS,
  ]);
  // node itself is not instrumented: the runtime must be there before it, and node's own leaks are not ours
  const library = (name) => execFileSync("gcc", [`-print-file-name=${name}`], { encoding: "utf8" }).trim();
  const mocha = [join(root, "node_modules/mocha/bin/mocha.js"), "build/test/unit/native/*.test.js"];
  run("module's tests, ASan and UBSan", process.execPath, mocha, {
    LD_PRELOAD: `${library("libasan.so")} ${library("libstdc++.so.6")}`,
    ASAN_OPTIONS: "detect_leaks=0",
    UBSAN_OPTIONS: "print_stacktrace=1",
    LATENTKIT_NATIVE: module,
  });
}

function underThreadSanitizer() {
  const folder = join(root, "build/thread");
  const options = ["-DLATENTKIT_ADDON=OFF", "-DLATENTKIT_TESTS=ON", "-DLATENTKIT_SANITIZE=thread"];
  run("TSan configuration", "cmake", ["-S", root, "-B", folder, ...options]);
  run("TSan build", "cmake", ["--build", folder, "--parallel", JOBS, "--target", ...POOL_TESTS]);
  run(
    "pool's tests, TSan",
    "ctest",
    ["--test-dir", folder, "--output-on-failure", "--parallel", JOBS, "-R", `^(${POOL_TESTS.join("|")})$`],
    {
      TSAN_OPTIONS: "halt_on_error=1",
    },
  );
}

function run(what, program, args, env = {}) {
  process.stderr.write(`\n== ${what}\n`);
  const done = spawnSync(program, args, { cwd: root, stdio: "inherit", env: { ...process.env, ...env } });
  if (done.status === 0) return;
  process.stderr.write(`${what}: failed (${done.error?.message ?? done.signal ?? done.status}).\n`);
  process.exit(1);
}
