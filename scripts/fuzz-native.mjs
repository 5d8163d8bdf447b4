#!/usr/bin/env node
// Runs the libFuzzer programs of test/native/fuzz under ASan and UBSan, each alone, from the committed corpus:
// node scripts/fuzz-native.mjs [deflate png …] [--seconds 600]. Needs Linux, clang++, CMake and zlib's header.
// Without clang++ it is skipped. New inputs gather in build/fuzz/corpus; an input that fails is left in build/fuzz.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./setup.mjs";

const folder = join(root, "build/fuzz");
const TARGETS = readdirSync(join(root, "test/native/fuzz"))
  .filter((name) => name.endsWith("_fuzz.cpp"))
  .map((name) => name.slice(0, -"_fuzz.cpp".length));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "600" } },
});
const targets = positionals.length > 0 ? positionals : TARGETS;
const stranger = targets.find((target) => !TARGETS.includes(target));
if (stranger !== undefined) fail(`Expected ${TARGETS.join(" or ")}, received ${stranger}.`);

if (spawnSync("clang++", ["--version"]).status !== 0) {
  console.error("Skipped: clang++ was not found.");
  process.exit();
}
const clang = ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"];
const options = ["-DLATENTKIT_ADDON=OFF", "-DLATENTKIT_FUZZ=ON", "-DLATENTKIT_SANITIZE=address"];
run("cmake", ["-S", root, "-B", folder, ...clang, ...options]);
run("cmake", ["--build", folder, "--parallel", "2", "--target", ...targets.map((target) => `${target}_fuzz`)]);
for (const target of targets) {
  const corpus = join(folder, "corpus", target);
  mkdirSync(corpus, { recursive: true });
  run(join(folder, "test/native/fuzz", `${target}_fuzz`), [
    `-max_total_time=${values.seconds}`,
    "-max_len=8192",
    "-timeout=20",
    "-print_final_stats=1",
    `-artifact_prefix=${folder}/${target}-`,
    corpus,
    join(root, "test/native/fuzz/corpus", target),
  ]);
}

function run(program, args) {
  const done = spawnSync(program, args, { cwd: root, stdio: "inherit" });
  if (done.status !== 0) fail(`${program} failed (${done.error?.message ?? done.signal ?? done.status}).`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
