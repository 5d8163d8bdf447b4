#!/usr/bin/env node
// npm run gpu-check: everything that only a GPU can show, with a line for each point. docs/cuda.md says how to use it.
//   --out DIR        where results go: $OUT, else gpu-check-out
//   --driver FILE    libcuda, or the fake one of the tests; where the driver lies otherwise
//   --library FILE   a latentkit_cuda.so that is there, instead of building
//   --python FILE    a Python with PyTorch, python3 if absent
//   --seconds N      the whole run ends by then, 580; with more, each step may take longer too
//   --quick          the fewest seeds, tests and sizes: of use for trying this program itself
//   --only NAME      this step alone; may be repeated
//   --models         networks by ONNX Runtime instead of operations of tensors
//   --provider NAME  the one that runs the networks: webgpu if absent
// Ends with 0 if no point failed and at least one passed. A point that could not be run says why.
// Runs the programs of the tests with the real driver, so a card is judged as CI judges the fake one.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { probeCuda } from "../dist/native/probe.js";
import { runner } from "./gpu-check/child.mjs";
import { networkSteps } from "./gpu-check/networks/steps.mjs";
import { root, steps } from "./gpu-check/steps.mjs";

const { values: options } = parseArgs({
  options: {
    out: { type: "string", default: process.env.OUT || "gpu-check-out" },
    driver: { type: "string" },
    library: { type: "string" },
    python: { type: "string", default: "python3" },
    seconds: { type: "string", default: "580" },
    quick: { type: "boolean", default: false },
    only: { type: "string", multiple: true },
    models: { type: "boolean", default: false },
    provider: { type: "string", default: "webgpu" },
  },
});
const wanted = options.models ? networkSteps : steps;
const unknown = (options.only ?? []).filter((name) => wanted.every((step) => step.name !== name));
if (unknown.length > 0) {
  const names = wanted.map(({ name }) => name).join(", ");
  process.stderr.write(`--only: expected one of ${names}, received ${unknown.join(", ")}.\n`);
  process.exit(2);
}
const STATES = ["passed", "failed", "not run"];
const out = resolve(options.out);
mkdirSync(out, { recursive: true });
const started = Date.now();
/** The steps' own limits suit a machine with a GPU and many cores. */
const patience = Math.max(1, Number(options.seconds) / 580);
const left = () => Number(options.seconds) - (Date.now() - started) / 1000;

const results = [];
const check = {
  ...options,
  out,
  children: runner(join(out, "log.txt")),
  driver: driverFile(),
  probe: /** @type {import("../dist/native/probe.js").CudaProbe | undefined} */ (undefined),
};
for (const step of wanted) {
  if (options.only !== undefined && !options.only.includes(step.name)) continue;
  await take(step);
  // whatever ends this program: what was found is there
  write();
}
process.stdout.write(`\n${write()}\nResults: ${out}\n`);
const isGood = results.some(({ state }) => state === "passed") && results.every(({ state }) => state !== "failed");
process.exitCode = isGood ? 0 : 1;

/** Writes what was found so far, and returns it in words. */
function write() {
  const counts = STATES.map((state) => `${results.filter((result) => result.state === state).length} ${state}`);
  const lines = [
    about(),
    ...results.map(({ state, point, detail, seconds }) => `${state.padEnd(7)}  ${point}: ${detail} (${seconds} s)`),
    `${counts.join(", ")}; ${((Date.now() - started) / 1000).toFixed(0)} s`,
  ];
  writeFileSync(join(out, "summary.txt"), `${lines.join("\n")}\n`);
  writeFileSync(join(out, "results.json"), `${JSON.stringify({ about: about(), points: results }, null, 1)}\n`);
  return lines.join("\n");
}

/** Runs one step and adds its points; an error is the step's own result, and the next step follows. */
async function take(step) {
  const began = Date.now();
  const limit = Math.min(step.seconds * patience, left());
  process.stderr.write(`${step.name} …\n`);
  // probed again after the build, which may make the named driver
  if (check.probe?.available !== true) check.probe = probeCuda(check.driver === undefined ? undefined : [check.driver]);
  let points;
  try {
    if (limit <= 1) points = notRun(step, `no time was left of ${options.seconds} s`);
    else if (step.needs === "gpu" && !check.probe?.available) points = notRun(step, check.probe?.reason);
    else points = await step.run({ ...check, limit });
  } catch (error) {
    points = step.points.map((point) => ({ point, state: "failed", detail: String(error?.message ?? error) }));
  }
  const seconds = Number(((Date.now() - began) / 1000).toFixed(1));
  for (const point of points) {
    if (!STATES.includes(point.state)) throw new Error(`${step.name}: no state "${point.state}"`);
    results.push({ step: step.name, ...point, detail: oneLine(point.detail), seconds });
    process.stderr.write(`  ${point.state}: ${point.point}: ${oneLine(point.detail)}\n`);
  }
}

function notRun(step, why) {
  return step.points.map((point) => ({ point, state: "not run", detail: why }));
}

function about() {
  const [device] = check.probe?.devices ?? [];
  const gpu = device === undefined ? "no GPU" : `${device.name}, capability ${device.computeCapability}`;
  const driver = check.probe?.driverVersion === undefined ? "" : `, driver for CUDA ${check.probe.driverVersion}`;
  return `${new Date(started).toISOString().slice(0, 10)}: ${gpu}${driver}; ${cpus()[0].model}, Node ${process.versions.node}`;
}

function oneLine(text) {
  return text.replaceAll(/\s+/g, " ").trim().slice(0, 400);
}

/** A path, or a name that the loader looks for. */
function driverFile() {
  if (options.driver === undefined) return undefined;
  return options.driver.includes("/") ? resolve(root, options.driver) : options.driver;
}
