// The steps of gpu-check in order. Each has a limit in seconds and returns points: passed, failed, or not run and why.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { complaint } from "./child.mjs";
import { POINTS } from "./points.mjs";

export const root = fileURLToPath(new URL("../..", import.meta.url));

const built = (name) => join(root, "build", name);
const script = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Programs of test/native that compare the device with the CPU, on 200 random shapes for each operation. */
const PROGRAMS = ["elementwise", "noise", "planes", "reduce", "images", "threads"].map((name) => `cuda-${name}_test`);
/** Those whose threads meet in shared memory or shuffles. */
const MEETING = ["cuda-reduce_test", "cuda-images_test"];

const passed = (point, detail) => ({ point, state: "passed", detail });
const failed = (point, detail) => ({ point, state: "failed", detail });
const notRun = (point, detail) => ({ point, state: "not run", detail });

/** Folder of the trial's verdicts, for this run alone. */
const cache = mkdtempSync(join(tmpdir(), "latentkit-gpu-check-"));
process.on("exit", () => rmSync(cache, { recursive: true, force: true }));

const libraryOf = ({ library }) => library ?? built("Release/latentkit_cuda.so");

/** The environment of a process that computes on the device. */
function onDevice(check) {
  return {
    LATENTKIT_CUDA: libraryOf(check),
    LATENTKIT_CACHE_DIR: cache,
    LATENTKIT_DEVICE: "cuda:0",
    ...(check.driver !== undefined && { LATENTKIT_CUDA_DRIVER: check.driver }),
  };
}

const node = (check, args, more = {}) =>
  check.children(process.execPath, args, { cwd: root, limit: check.limit, env: onDevice(check), ...more });

/** One point that holds if the program ends well and has nothing to say against it. */
async function judged(point, running, describe) {
  const ran = await running;
  if (ran.code !== 0) return [failed(point, complaint(ran))];
  return [passed(point, describe(ran))];
}

async function build(check) {
  if (check.library !== undefined) return [notRun(POINTS.build, `${check.library} was given`)];
  const end = Date.now() + check.limit * 1000;
  // for the card that is there; for all if the driver is not the real one
  const [device] = check.probe.devices;
  const architecture = device === undefined ? "" : `${device.computeCapability.replace(".", "")}-real`;
  const environment = { PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  const run = (args) =>
    check.children("cmake", args, { cwd: root, limit: (end - Date.now()) / 1000, env: environment });
  const options = ["-DCMAKE_BUILD_TYPE=Release", "-DLATENTKIT_TESTS=ON", "-DLATENTKIT_CUDA=ON"];
  const configured = await run(["-S", root, "-B", built(""), ...options, `-DCMAKE_CUDA_ARCHITECTURES=${architecture}`]);
  if (configured.code !== 0) return [failed(POINTS.build, complaint(configured))];
  const targets = ["latentkit", "latentkit_cuda", "cuda-fake", ...PROGRAMS];
  const parallel = ["--parallel", String(availableParallelism())];
  const what = configured.stdout.match(/CUDA [\d.]+: kernels for .*/)?.[0] ?? "";
  return judged(POINTS.build, run(["--build", built(""), ...parallel, "--target", ...targets]), () => what);
}

async function doctor(check) {
  const point = POINTS.doctor;
  const ran = await node(check, ["bin/latentkit.mjs", "doctor", "--json", "--out", join(check.out, "doctor")]);
  if (!ran.stdout.startsWith("{")) return [failed(point, complaint(ran))];
  const { ok, findings } = JSON.parse(ran.stdout);
  const { value } = findings.find(ok ? ({ name }) => name === "cuda:0" : (finding) => !finding.ok) ?? {};
  return [ok && value?.endsWith("; used") ? passed(point, value) : failed(point, value ?? ran.stdout)];
}

async function trial(check) {
  const point = POINTS.trial;
  const module = new URL("../../dist/native/cuda/trust.js", import.meta.url);
  const [{ name, computeCapability }] = check.probe.devices;
  const { driver, driverVersion } = check.probe;
  const question = { library: libraryOf(check), driver, ordinal: 0, driverVersion, name, computeCapability };
  const source = `const { trustOf } = await import(${JSON.stringify(module.href)});
    const began = performance.now();
    const trust = trustOf(${JSON.stringify(question)}, { folder: ${JSON.stringify(join(cache, "trial"))} });
    console.log(JSON.stringify({ ...trust, ms: performance.now() - began }));`;
  const ran = await node(check, ["--input-type=module", "-e", source]);
  if (ran.code !== 0) return [failed(point, complaint(ran))];
  const { trusted, reason, ms } = JSON.parse(ran.stdout);
  return [trusted ? passed(point, `${(ms / 1000).toFixed(1)} s with the start of a process`) : failed(point, reason)];
}

async function golden(check) {
  const point = POINTS.golden;
  const { SUITES } = await import("../../build/test/helpers/process/device-suites.js");
  const suites = check.quick ? ["unit/tensor/random.test.js"] : SUITES;
  const mocha = join(root, "node_modules/mocha/bin/mocha.js");
  const files = suites.map((suite) => join("build/test", suite));
  const ran = await node(check, [mocha, "--reporter", "json", ...files]);
  const begin = ran.stdout.indexOf('{\n  "stats"');
  if (begin < 0) return [failed(point, complaint(ran))];
  const { stats, failures } = JSON.parse(ran.stdout.slice(begin));
  const first = failures[0] === undefined ? "" : `; first: ${failures[0].fullTitle}: ${failures[0].err.message}`;
  const detail = `${stats.passes} passed, ${stats.failures} failed, ${stats.pending} skipped${first}`;
  const isGood = ran.code === 0 && stats.passes > 0 && stats.pending === 0;
  return [isGood ? passed(point, detail) : failed(point, detail)];
}

/** A program that prints its points as JSON in the last line. */
async function printed(points, running) {
  const ran = await running;
  if (ran.code !== 0) return points.map((point) => failed(point, complaint(ran)));
  return JSON.parse(ran.stdout.trim().split("\n").at(-1));
}

/** @this {{ points: string[] }} */
function noise(check) {
  const limits = check.quick ? ["--quick"] : [];
  const args = [script("philox.mjs"), "--python", check.python, ...limits];
  return printed(this.points, node(check, args));
}

/** The C++ programs one after another, each through `how`: a tool and its arguments, or nothing. */
async function programs(check, point, names, how) {
  const env = { LATENTKIT_TEST_CUDA: libraryOf(check), LATENTKIT_CUDA_DRIVER: check.probe.driver };
  const end = Date.now() + check.limit * 1000;
  const times = [];
  for (const name of check.quick ? names.slice(0, 1) : names) {
    const program = built(`test/native/${name}`);
    if (!existsSync(program)) return [notRun(point, `${program} is not built`)];
    const [tool, ...args] = [...how, program];
    const limit = (end - Date.now()) / 1000;
    const ran = await check.children(tool, args, { cwd: root, limit, env });
    if (ran.code !== 0) return [failed(point, `${name}: ${complaint(ran)}`)];
    times.push(`${name} ${ran.seconds.toFixed(1)} s`);
  }
  return [passed(point, times.join(", "))];
}

/** compute-sanitizer is not part of a driver: it comes with the compiler, or is not installed. */
async function sanitizer(check, point, names, tool) {
  if (isFake(check)) return [notRun(point, "the fake driver runs kernels on the CPU")];
  const installed = [process.env.CUDA_PATH, process.env.CUDA_HOME, "/usr/local/cuda"]
    .filter((folder) => folder !== undefined)
    .map((folder) => join(folder, "bin/compute-sanitizer"))
    .find((file) => existsSync(file));
  const program = installed ?? "compute-sanitizer";
  const there = await check.children(program, ["--version"], { limit: 20 });
  if (there.code !== 0) return [notRun(point, "compute-sanitizer is not installed")];
  const how = [program, "--tool", tool, "--error-exitcode", "9", "--print-limit", "20"];
  return programs(check, point, names, how);
}

/** A name without a folder is the system's own driver. */
const isFake = ({ probe: { driver } }) => driver.includes("/") && readFileSync(driver).includes("fake_cuda_configure");

/** @this {{ points: string[] }} */
function bench(check) {
  const files = ["--json", join(check.out, "bench.json"), "--markdown", join(check.out, "bench.md")];
  const args = ["bench/cuda.mjs", ...files, "--points", ...(check.quick || isFake(check) ? ["--quick"] : [])];
  const env = { ...onDevice(check), BENCH_PYTHON: check.python };
  return printed(this.points, node(check, args, { env }));
}

/** `gpu` means that a device is needed; without one the step is not run. */
const step = (name, seconds, points, run, needs = "gpu") => ({ name, seconds, points, run, needs });

export const steps = [
  step("build", 240, [POINTS.build], build, "compiler"),
  step("doctor", 90, [POINTS.doctor], doctor),
  step("trial", 90, [POINTS.trial], trial),
  step("golden", 150, [POINTS.golden], golden),
  step("noise", 120, [POINTS.philox, POINTS.torch], noise),
  step("shapes", 120, [POINTS.shapes], (check) => programs(check, POINTS.shapes, PROGRAMS, [])),
  step("bench", 150, [POINTS.share, POINTS.chain], bench),
  step("memcheck", 150, [POINTS.memcheck], (check) => sanitizer(check, POINTS.memcheck, PROGRAMS, "memcheck")),
  step("racecheck", 150, [POINTS.racecheck], (check) => sanitizer(check, POINTS.racecheck, MEETING, "racecheck")),
];
