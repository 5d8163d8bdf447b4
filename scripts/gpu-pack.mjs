#!/usr/bin/env node
// npm run gpu-pack: one archive that a bare CUDA machine (cmake, nvcc, g++; no Node, no npm, no network) unpacks and runs
// with "bash latentkit-gpu/gpu-check.sh". See docs/cuda.md.
//   --out FILE   build/latentkit-gpu.tar.xz if absent
//   --models     with ONNX Runtime instead of the tests, for gpu-check.sh --models
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { orExplain, root, SetupError, setup } from "./setup.mjs";

const TOP = "latentkit-gpu";
const MAX_BYTES = 60e6;
/** Packages of the tests, headers of the native core, and koffi, which finds the card. */
export const TEST_PACKAGES = [
  "@noble/hashes",
  "koffi",
  "mocha",
  "node-addon-api",
  "node-api-headers",
  "pngjs",
  "sharp",
];
const RUNTIME = "onnxruntime-node";
/** Programs of the tests that compare tiny networks, and the files that these are made of. */
const TINY_NETWORKS = ["networks", "models", "folders.js", "golden-file.js"].map(
  (part) => `build/test/helpers/${part}`,
);
const GOLDEN_MODELS = /^test\/golden\/(?:models-|models\/checkpoints\/sd1_fp8\.)/;
/** The native core, which gpu-check builds on the machine that it tests. */
const CORE = "build/Release/latentkit.node";
const LICENSES = [
  "../LICENSE",
  "../share/doc/node/LICENSE",
  "../share/doc/nodejs/LICENSE",
  "../share/doc/nodejs/copyright",
];

/** Paths of these packages and all that they need, as the lockfile has them installed; optional ones if installed. */
export function closure(packages, names, isInstalled) {
  const paths = new Set();
  const add = (from, name, isOptional) => {
    const path = locate(packages, from, name);
    if (path === undefined || !isInstalled(path)) {
      if (isOptional) return;
      throw new SetupError(`Package ${name} is not installed: run npm ci first.`);
    }
    if (paths.has(path)) return;
    paths.add(path);
    const { dependencies = {}, optionalDependencies = {} } = packages[path];
    for (const needed of Object.keys(dependencies)) add(path, needed, needed in optionalDependencies);
    for (const needed of Object.keys(optionalDependencies)) add(path, needed, true);
  };
  for (const name of names) add("", name, false);
  return [...paths].sort();
}

/** Where Node finds a package: beside the one that asks, or further up. */
function locate(packages, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    const path = posix.join(folder, "node_modules", name);
    if (path in packages) return path;
    if (folder === "") return undefined;
  }
}

/** Puts the archive together, for `models` with ONNX Runtime instead of the tests; returns its size in bytes. */
export function pack(archive, { models = false } = {}) {
  setup({ tests: true });
  // outside: tools that look for their settings in a checkout would find a second one
  const staged = mkdtempSync(join(tmpdir(), "latentkit-gpu-pack-"));
  try {
    fill(staged, models);
    compress(staged, archive);
  } finally {
    rmSync(staged, { recursive: true });
  }
  return statSync(archive).size;
}

function fill(staged, models) {
  const project = join(staged, TOP, "project");
  for (const file of tracked())
    if (!models || !file.startsWith("test/") || GOLDEN_MODELS.test(file)) copy(join(root, file), join(project, file));
  copy(join(root, "dist"), join(project, "dist"));
  // what CMake builds lies there too
  const isTest = (file) => statSync(file).isDirectory() || file.endsWith(".js");
  if (models) for (const part of [CORE, ...TINY_NETWORKS]) copy(join(root, part), join(project, part));
  else cpSync(join(root, "build/test"), join(project, "build/test"), { recursive: true, filter: isTest });
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const names = [...Object.keys(packages[""].dependencies), ...(models ? [RUNTIME] : TEST_PACKAGES)];
  for (const path of closure(packages, names, (at) => existsSync(join(root, at)))) {
    const filter = (file) => isPacked(file.slice(join(root, path).length));
    cpSync(join(root, path), join(project, path), { recursive: true, filter });
  }
  addNode(join(staged, TOP));
  copy(join(root, "scripts/gpu-check/start.sh"), join(staged, TOP, "gpu-check.sh"));
}

/** Nested packages are entries of their own, and ONNX Runtime brings libraries for every platform. */
function isPacked(file) {
  const [, platform, architecture] = file.match(/^\/bin\/napi-v\d+\/(\w+)(?:\/(\w+))?/) ?? [];
  const isOther = (part, own) => part !== undefined && part !== own;
  if (isOther(platform, process.platform) || isOther(architecture, process.arch)) return false;
  return !file.includes("/node_modules");
}

function tracked() {
  try {
    return execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
  } catch (cause) {
    throw new SetupError("gpu-pack packs a git checkout: git ls-files failed here.", { cause });
  }
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true });
}

/** The Node that runs this, without its symbols, and its licence. */
function addNode(folder) {
  const program = realpathSync(process.execPath);
  const license = LICENSES.map((file) => resolve(dirname(program), file)).find((file) => existsSync(file));
  if (license === undefined) throw new SetupError(`The licence of ${program} was not found: it has to go with it.`);
  copy(license, join(folder, "bin/LICENSE.node"));
  const packed = join(folder, "bin/node");
  copy(program, packed);
  chmodSync(packed, 0o755);
  execFileSync("strip", [packed]);
}

/** The same files give the same bytes: names in order, no owners, one time. */
function compress(staged, archive) {
  mkdirSync(dirname(archive), { recursive: true });
  const order = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go+r-w"];
  execFileSync("tar", [...order, "--use-compress-program=xz -9 -T1", "-C", staged, "-cf", archive, TOP]);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  orExplain(() => {
    const { values } = parseArgs({ options: { out: { type: "string" }, models: { type: "boolean" } } });
    const archive = resolve(values.out ?? join(root, "build/latentkit-gpu.tar.xz"));
    const size = pack(archive, values);
    process.stdout.write(`${archive}: ${(size / 1e6).toFixed(1)} MB\n`);
    if (size > MAX_BYTES) throw new SetupError(`The archive is larger than ${MAX_BYTES / 1e6} MB.`);
  });
}
