#!/usr/bin/env node
// Builds the native core if it is missing or older than its sources, in a checkout and in a project that has cmake-js
// and node-addon-api. Needs CMake and a C++ compiler.
// --force builds anew, --sanitize address|thread builds instrumented into build/address or build/thread,
// --tests adds the C++ tests, --cuda-test the fake CUDA driver of the tests, --cuda latentkit_cuda.so for every GPU.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, utimesSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const SOURCES = ["CMakeLists.txt", "native"];
const CUDA_LIBRARY = "Release/latentkit_cuda.so";

/** A build that cannot be done; the message is for a person. */
export class BuildError extends Error {}

/**
 * Builds where needed; returns the path of latentkit.node.
 * @param {{ force?: boolean, sanitize?: "" | "address" | "thread", tests?: boolean, folder?: string,
 *   cuda?: "AUTO" | "ON" | "OFF", architectures?: string, toolchain?: string }} options cuda: latentkit_cuda.so beside
 *   it, see defaultCuda; toolchain: CMake's file for another platform
 */
export function buildNative({
  force = false,
  sanitize = "",
  tests = false,
  folder = join(root, "build", sanitize),
  toolchain,
  ...cudaOptions
} = {}) {
  const { cuda, architectures } = { ...(sanitize === "" ? defaultCuda(folder) : { cuda: "OFF" }), ...cudaOptions };
  const binary = join(folder, "Release/latentkit.node");
  const changed = newest(SOURCES.map((path) => join(root, path)));
  const whole = existsSync(binary) && (cuda !== "ON" || existsSync(join(folder, CUDA_LIBRARY)));
  if (!force && !tests && whole && statSync(binary).mtimeMs >= changed) return binary;
  checkCompiler();
  if (force || isForeign(folder)) clean(folder);
  const options = [
    `LATENTKIT_SANITIZE=${sanitize}`,
    `LATENTKIT_TESTS=${tests ? "ON" : "OFF"}`,
    `LATENTKIT_CUDA=${cuda}`,
    `CMAKE_CUDA_ARCHITECTURES=${architectures ?? ""}`,
    ...(toolchain === undefined ? [] : [`CMAKE_TOOLCHAIN_FILE=${toolchain}`]),
  ];
  // cmake-js configures only once: options that differ from the last time would be ignored
  const [names, values] = [0, 1].map((part) => options.map((option) => option.split("=")[part]));
  if (names.some((name, index) => (cached(folder, name) ?? "") !== values[index]))
    rmSync(join(folder, "CMakeCache.txt"), { force: true });
  const args = ["build", "--out", folder, "--parallel", String(availableParallelism())];
  process.stderr.write(`Building the native core${sanitize ? ` for -fsanitize=${sanitize}` : ""} …\n`);
  const started = new Date();
  const build = spawnSync(process.execPath, [cmakeJs(), ...args, ...options.map((option) => `--CD${option}`)], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (build.status !== 0)
    throw new BuildError(`${build.stdout}${build.stderr}The native core did not build (see above).`);
  if (!existsSync(binary)) throw new BuildError(`The build ended without ${binary}.`);
  if (cuda === "AUTO" && !existsSync(join(folder, CUDA_LIBRARY)))
    process.stderr.write("No CUDA compiler was found: built without latentkit_cuda.so.\n");
  // a build that had nothing to do leaves the old time, and would be run again and again
  utimesSync(binary, started, started);
  return binary;
}

/**
 * Builds the fake CUDA driver and the library to be tried on it into build/Release/cuda-test; no CUDA compiler is needed.
 * After buildNative, and on Linux only: elsewhere it does nothing.
 */
export function buildCudaTest() {
  if (process.platform !== "linux") return;
  const folder = join(root, "build");
  const outputs = ["latentkit_cuda.so", "libcuda-fake.so"].map((name) => join(folder, "Release/cuda-test", name));
  const changed = newest([...SOURCES, "test/native/cuda"].map((path) => join(root, path)));
  if (outputs.every((file) => existsSync(file) && statSync(file).mtimeMs >= changed)) return;
  checkCompiler();
  const started = new Date();
  const args = ["--build", folder, "--parallel", String(availableParallelism())];
  const build = spawnSync("cmake", [...args, "--target", "cuda-fake", "latentkit_cuda_for_tests"], {
    encoding: "utf8",
  });
  if (build.status !== 0) throw new BuildError(`${build.stdout}${build.stderr}The fake CUDA driver did not build.`);
  for (const file of outputs) utimesSync(file, started, started);
}

function newest(paths) {
  let time = 0;
  for (const path of paths) {
    const stats = statSync(path);
    time = Math.max(
      time,
      stats.isDirectory() ? newest(readdirSync(path).map((name) => join(path, name))) : stats.mtimeMs,
    );
  }
  return time;
}

/** Whether the folder was configured for a checkout in another folder, which CMake refuses. */
function isForeign(folder) {
  const home = cached(folder, "CMAKE_HOME_DIRECTORY");
  return home !== undefined && (!existsSync(home) || realpathSync(home) !== realpathSync(root));
}

/**
 * Builds latentkit_cuda.so for the GPUs of this machine if it has one and a compiler: seconds. For every GPU, which
 * takes longer, on request: --cuda, LATENTKIT_REQUIRE_CUDA=1, and in prebuilds. One that exists is rebuilt when stale.
 */
function defaultCuda(folder) {
  if (process.env.LATENTKIT_REQUIRE_CUDA === "1") return { cuda: "ON" };
  if (existsSync(join(folder, CUDA_LIBRARY)))
    return { cuda: "ON", architectures: cached(folder, "CMAKE_CUDA_ARCHITECTURES") };
  const hasDevice = ["/dev/nvidiactl", "/dev/dxg"].some((path) => existsSync(path));
  const hasCompiler = onPath("nvcc") || existsSync("/usr/local/cuda/bin/nvcc");
  return hasDevice && hasCompiler ? { cuda: "ON", architectures: "native" } : { cuda: "OFF" };
}

function cached(folder, name) {
  const cache = join(folder, "CMakeCache.txt");
  if (!existsSync(cache)) return undefined;
  return readFileSync(cache, "utf8").match(new RegExp(`^${name}:[A-Z]+=(.*)$`, "m"))?.[1];
}

/** Removes CMake's files alone: compiled TypeScript and other builds lie in the same folder. */
function clean(folder) {
  for (const name of [
    "CMakeCache.txt",
    "CMakeFiles",
    "Release",
    "native",
    "build.ninja",
    ".ninja_log",
    ".ninja_deps",
    "Makefile",
  ])
    rmSync(join(folder, name), { recursive: true, force: true });
}

function checkCompiler() {
  if (!onPath("cmake"))
    throw new BuildError(
      "CMake was not found: install CMake 3.20 or newer (Debian and Ubuntu: apt-get install cmake).",
    );
  const compilers = process.env.CXX ? [process.env.CXX.split(" ")[0]] : ["c++", "g++", "clang++"];
  if (process.platform !== "win32" && !compilers.some(onPath))
    throw new BuildError(
      "A C++ compiler was not found: install g++ 12 or clang 15 or newer (Debian and Ubuntu: apt-get install g++ make).",
    );
}

/** Whether a program of this name is in a folder of PATH. */
export function onPath(program) {
  const extensions = process.platform === "win32" ? [".exe", ".cmd"] : [""];
  const folders = ["", ...(process.env.PATH ?? "").split(delimiter)];
  return folders.some((folder) => extensions.some((extension) => existsSync(join(folder, program + extension))));
}

function cmakeJs() {
  try {
    return join(dirname(createRequire(join(root, "package.json")).resolve("cmake-js/package.json")), "bin/cmake-js");
  } catch (cause) {
    throw new BuildError(
      'cmake-js was not found: in a checkout run "npm ci"; in a project run ' +
        '"npm install --save-dev cmake-js node-addon-api", then this again.',
      { cause },
    );
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    const { values } = parseArgs({
      options: {
        force: { type: "boolean" },
        tests: { type: "boolean" },
        "cuda-test": { type: "boolean" },
        cuda: { type: "boolean" },
        sanitize: { type: "string", default: "" },
      },
    });
    if (!["", "address", "thread"].includes(values.sanitize)) throw new BuildError("--sanitize: address or thread.");
    const { cuda, "cuda-test": cudaTest, ...rest } = values;
    const options = { ...rest, sanitize: /** @type {"" | "address" | "thread"} */ (rest.sanitize) };
    buildNative(cuda ? { ...options, cuda: "ON", architectures: "" } : options);
    if (cudaTest) buildCudaTest();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
