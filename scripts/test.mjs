#!/usr/bin/env node
// npm test: set up, check the layers, run mocha. --quick runs the unit tests that render and start nothing, --long those that take
// long. Other arguments go to mocha; named files replace the whole suite.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { orExplain, root, setup } from "./setup.mjs";

/** @typedef {import("./test/reporter.cjs").Outcome} Outcome */

/** Tag in the title of a test that needs the machine for itself: it measures time or memory. */
const ALONE = "@alone";
/** Times that such a test is tried again: neighbours of a virtual machine take time too, and a real fault fails each time. */
const RETRIES = "2";
/** Tag of a test that takes long; npm run test:long runs these. */
const LONG = "@long";
const MOST_JOBS = 8;
/** Above the processors: tests wait too, for processes, timers and disks. */
const EXTRA_JOBS = 2;
/** Files of tests that take longest, started first: one that came last would run on alone. */
const LONGEST = [
  "networks-on-webgpu",
  "nodes-on-device",
  "docs",
  "unit/host/checkpoint/e2e-golden",
  "unit/cli/batch/render-batch",
  "unit/render/threads/thread-pool",
];
const LISTED_PARTS = 12;
/** Modules by which a test, or a helper of it, starts a process, a thread, a browser, a database or networks: not quick. */
const STARTING = /^(node:child_process|node:worker_threads|playwright-core|pg|onnxruntime-node)$/;
/** Unit tests that render or start networks by the sources; those in no folder go over the whole package. Not quick. */
const RENDERING = /^build\/test\/unit\/(?:[^/]+$|render\/|host\/checkpoint\/|cli\/reproducible\/)/;

orExplain(() => setup({ tests: true }));

// what this machine's user has found out about its devices is none of the tests' business
process.env.LATENTKIT_CACHE_DIR ??= join(root, "build/test-cache");

/** @param {string[]} args */
const node = (...args) => spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" }).status ?? 1;
const layers = node("scripts/check-layers.mjs");
if (layers !== 0) process.exit(layers);

const mocha = "node_modules/mocha/bin/mocha.js";
const args = process.argv.slice(2);
const choice = args.join(" ");
if (!["", "--quick", "--long"].includes(choice)) {
  const files = args.some((argument) => argument.endsWith(".test.js")) ? [] : ["build/test/**/*.test.js"];
  process.exit(node(mocha, ...args, ...files));
}

const started = performance.now();
const jobs = Math.min(MOST_JOBS, availableParallelism() + EXTRA_JOBS);
const inParallel = ["--parallel", "--jobs", String(jobs)];
const length = choice === "--long" ? `(?=.*${LONG})` : `(?!.*${LONG})`;
const together = ["--grep", `^${length}(?!.*${ALONE})`, ...inParallel];
const alone = ["--grep", `^${length}(?=.*${ALONE})`, "--retries", RETRIES];
const passes =
  choice === "--quick"
    ? [pass(together, testFiles().filter(isQuick))]
    : [
        pass(together, choice === "--long" ? testFiles().filter(has(LONG)) : testFiles()),
        pass(alone, testFiles().filter(has(ALONE))),
      ];
report(passes);
process.exit(passes.find(({ status }) => status !== 0)?.status ?? 0);

function testFiles() {
  const names = readdirSync(join(root, "build/test"), { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".test.js")).map((name) => join("build/test", name));
  const longest = LONGEST.map((name) => join("build/test", `${name}.test.js`));
  return [...longest, ...files.filter((file) => !longest.includes(file))];
}

/** @param {string} tag */
function has(tag) {
  return (/** @type {string} */ file) => readFileSync(join(root, file), "utf8").includes(tag);
}

/**
 * Whether a file is a unit test that renders nothing and starts nothing.
 *
 * @param {string} file
 */
function isQuick(file) {
  const path = file.replaceAll("\\", "/");
  return (
    path.startsWith("build/test/unit/") &&
    !RENDERING.test(path) &&
    ![...modulesOf(file)].some((name) => STARTING.test(name))
  );
}

/**
 * Modules outside the tests that a file imports, itself or by its helpers.
 *
 * @param {string} file
 * @param {Set<string>} seen
 * @returns {Set<string>}
 */
function modulesOf(file, seen = new Set()) {
  // a test may hold a program as text, which imports what is not here
  if (seen.has(file) || !existsSync(join(root, file))) return new Set();
  seen.add(file);
  const source = readFileSync(join(root, file), "utf8");
  const names = Array.from(source.matchAll(/^(?:import|export)\b[^"]*"([^"]+)";$/gm), ([, name = ""]) => name);
  const own = names.filter((name) => name.startsWith(".")).map((name) => join(dirname(file), name));
  return new Set([...names, ...own.flatMap((path) => [...modulesOf(path, seen)])]);
}

/**
 * Runs mocha once, and reads what its reporter wrote down.
 *
 * @param {string[]} options
 * @param {string[]} files
 * @returns {{ status: number, outcome: Outcome | undefined }}
 */
function pass(options, files) {
  // relative: mocha takes a comma in a path for the end of the option
  const output = "build/test-outcome.json";
  mkdirSync(join(root, "build"), { recursive: true });
  rmSync(join(root, output), { force: true });
  const reporter = ["--reporter", "scripts/test/reporter.cjs", "--reporter-option", `output=${output}`];
  const status = node(mocha, ...reporter, ...options, ...files);
  try {
    return { status, outcome: JSON.parse(readFileSync(join(root, output), "utf8")) };
  } catch {
    // mocha ended before its run did, and printed why
    return { status: status || 1, outcome: undefined };
  }
}

/**
 * Prints where the time went, what failed and, last, how many tests there were.
 *
 * @param {{ status: number, outcome: Outcome | undefined }[]} passes
 */
function report(passes) {
  const outcomes = passes.flatMap(({ outcome }) => outcome ?? []);
  const parts = outcomes.flatMap((outcome) => outcome.parts).sort((a, b) => b.ms - a.ms);
  /** @param {number} ms */
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
  const slowest = parts
    .slice(0, LISTED_PARTS)
    .flatMap(({ file, ms, slowest, slowestMs }) => [
      `${seconds(ms).padStart(8)}  ${file}`,
      `${seconds(slowestMs).padStart(8)}    of these: ${slowest}`,
    ]);
  const failures = outcomes.flatMap((outcome) => outcome.failures);
  const failed = [
    ...failures.map(({ file, title }) => `  ${file}: ${title}`),
    ...passes
      .filter(({ outcome }) => outcome === undefined)
      .map(({ status }) => `  mocha itself, with exit code ${status}`),
  ];
  /** @param {"passed" | "skipped"} figure */
  const sum = (figure) => outcomes.reduce((total, outcome) => total + outcome[figure], 0);
  const work = parts.reduce((total, { ms }) => total + ms, 0);
  const lines = [
    "Slowest parts:",
    ...slowest,
    ...(failed.length === 0 ? [] : ["Failed:", ...failed]),
    `${sum("passed")} tests passed, ${failures.length} failed, ${sum("skipped")} were skipped: ` +
      `${seconds(work)} of tests, ${jobs} at a time, in ${seconds(performance.now() - started)}.` +
      (choice === "--quick" ? " This was --quick: only unit tests that render and start nothing." : ""),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}
