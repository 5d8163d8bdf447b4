import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { root } from "../setup.mjs";
import { emulatorOf } from "./emulation.mjs";
import { npm, programPath, run } from "./npm.mjs";
import { manifestOf } from "./packages.mjs";
import { ownPlatform, PLATFORMS } from "./platforms.mjs";
import { checkService } from "./service.mjs";

// Installs a release's tarballs in an empty project without scripts, compiler and CMake, and renders there.

const TOOLS = ["cc", "c++", "gcc", "g++", "clang", "make", "ninja", "cmake"];
const PNG_START = "89504e470d0a1a0a";

/**
 * Throws if the package does not work as users install it on `platform`: this machine's own, or one that an emulator
 * here runs. Says of others that they were not run.
 * @param {{ folder: string, tarballs: readonly { name: string, file: string }[], platform: string }} options
 */
export function checkInstallation({ folder, tarballs, platform }) {
  const emulate = platform === ownPlatform() ? undefined : emulatorOf(platform);
  if (emulate === undefined && platform !== ownPlatform()) {
    process.stderr.write(`The package of ${platform} was not run: nothing here runs it.\n`);
    return;
  }
  // a name that a folder may have; an emulator may not know the umlaut
  const scratch = mkdtempSync(join(tmpdir(), emulate === undefined ? "latentkit pack, ü-" : "latentkit-pack-"));
  try {
    const names = ["latentkit", `@latentkit/${platform}`, `@latentkit/${platform}-cuda`];
    const files = tarballs.filter(({ name }) => names.includes(name)).map(({ file }) => join(folder, file));
    const project = join(scratch, "project");
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true }));
    const env = { ...process.env, PATH: bareBin(scratch), LATENTKIT_NATIVE: "" };
    const machine = Object.entries(PLATFORMS[platform]).map(([key, value]) => `--${key}=${value}`);
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", ...machine];
    // npm refuses a tarball for another processor that is named on its command line, unless it is forced
    const force = platform === ownPlatform() ? [] : ["--force"];
    npm(["install", ...options, ...force, ...files], project, env);
    if (platform === ownPlatform()) checkOwn(project, env);
    else checkByEmulation(project, platform, emulate);
    process.stderr.write(`The packages of ${platform} install and render without scripts, compiler and CMake.\n`);
    if (platform === ownPlatform()) process.stderr.write(`latentkit ${costs({ scratch, options, files, env })}.\n`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Sentence about an installation without its optional parts but for the platform's package. */
function costs({ scratch, options, files, env }) {
  const project = join(scratch, "small");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true }));
  const needed = files.filter((file) => !file.includes("-cuda-"));
  npm(["install", ...options, "--omit=optional", "--omit=peer", ...needed], project, env);
  return `takes ${checkSize(project)} and ${timeImports(project)}`;
}

function checkOwn(project, env) {
  checkInstallScripts(project);
  const node = (...args) => run(process.execPath, args, project, env);
  checkBuildTools(project);
  checkModule(node);
  checkReadme(project, env);
  checkService(project, env);
  const resolved = node("-p", 'require.resolve("latentkit/examples/noise.json")');
  assert.ok(existsSync(resolved.trim()), "latentkit/examples/* is not reachable");
  checkTypes(project);
  checkWithoutPlatform(project, env);
}

/** Without the platform's package the remedy is one command. Last, since it takes the package away. */
function checkWithoutPlatform(project, env) {
  rmSync(join(project, "node_modules/@latentkit"), { recursive: true });
  const command = ["node_modules/latentkit/bin/latentkit.mjs", "render", "examples/noise.json"];
  const { status, stderr } = spawnSync(process.execPath, command, { cwd: project, env, encoding: "utf8" });
  assert.notEqual(status, 0);
  assert.ok(stderr.includes(`Run "npm install @latentkit/${ownPlatform()}@`), stderr);
}

/** Renders the example by an emulator, and here with the native core of this checkout: the bytes must be the same. */
function checkByEmulation(project, platform, emulate) {
  // relative paths: those of Windows are others
  const latentkit = "node_modules/latentkit";
  const example = [
    "render",
    `${latentkit}/examples/first-light.json`,
    "--input",
    `${latentkit}/examples/input`,
    "--out",
  ];
  emulate([`${latentkit}/bin/latentkit.mjs`, ...example, "emulated"], project);
  const env = { ...process.env, LATENTKIT_NATIVE: "" };
  run(process.execPath, [join(root, "bin/latentkit.mjs"), ...example, "own"], project, env);
  const emulated = hashesOf(join(project, "emulated"));
  assert.ok(Object.keys(emulated).length >= 3, "the emulated render wrote no pictures");
  assert.deepEqual(emulated, hashesOf(join(project, "own")), `bytes of files rendered for ${platform} and here`);
}

function hashesOf(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const hash = ({ parentPath, path, name }) =>
    createHash("sha256")
      .update(readFileSync(join(parentPath ?? path, name)))
      .digest("hex");
  return Object.fromEntries(files.map((file) => [file.name, hash(file)]));
}

/** pnpm and bun report each package whose install script they did not run. */
function checkInstallScripts(project) {
  const folder = join(project, "node_modules");
  const manifests = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    /(?:^|[\\/])node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+[\\/]package\.json$/.test(join("node_modules", path)),
  );
  const withScripts = manifests.filter((path) => {
    const { scripts = {} } = JSON.parse(readFileSync(join(folder, path), "utf8"));
    return ["preinstall", "install", "postinstall"].some((name) => name in scripts);
  });
  assert.ok(manifests.length > 20, "no packages were found");
  assert.deepEqual(withScripts, [], "packages with install scripts");
}

/** Tools of a build from source are not installed; who builds is told to install them. */
function checkBuildTools(project) {
  for (const name of ["cmake-js", "node-addon-api"])
    assert.ok(!existsSync(join(project, "node_modules", name)), `${name} is installed for users`);
  const script = join(project, "node_modules/latentkit/scripts/native-build.mjs");
  const { status, stderr } = spawnSync(process.execPath, [script, "--force"], { cwd: project, encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(
    stderr,
    /^cmake-js was not found: .* "npm install --save-dev cmake-js node-addon-api", then this again\.$/m,
  );
}

function checkModule(node) {
  const result = `JSON.stringify([typeof m.randn, m.randn([1, 4, 2, 2], { seed: 42n }).data.length, m.device().isa.length > 0])`;
  const required = node("-e", `const m = require("latentkit"); console.log(${result})`);
  const imported = node("--input-type=module", "-e", `import * as m from "latentkit"; console.log(${result})`);
  assert.equal(required.trim(), '["function",16,true]');
  assert.equal(imported, required);
  assert.equal(node("-p", 'typeof require("latentkit/testing").expectRender').trim(), "function");
}

/** The commands of README.md up to its first picture, word by word, but for those that need a registry. */
function checkReadme(project, env) {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const section = readme.slice(0, readme.indexOf("\n## In a program\n"));
  const blocks = [...section.matchAll(/(?:^<!-- (not run)[^\n]*\n)?^```bash\n([\s\S]*?)^```$/gm)].flatMap(
    ([, isNotRun, code]) => (isNotRun === undefined ? [code] : []),
  );
  assert.ok(blocks.length >= 2, "README.md has no commands for a first picture");
  for (const code of blocks) run("sh", ["-eu", "-c", code], project, env);
  const pictures = readdirSync(join(project, "out"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".png"),
  );
  assert.ok(pictures.length > 0, "render wrote no PNG");
  for (const picture of pictures) {
    const file = readFileSync(join(project, "out", picture));
    assert.equal(file.subarray(0, 8).toString("hex"), PNG_START, `${picture} is not a PNG`);
  }
}

/** A folder for PATH with node and a shell, and nothing that compiles. */
function bareBin(scratch) {
  const folder = join(scratch, "bin");
  mkdirSync(folder);
  symlinkSync(process.execPath, join(folder, "node"));
  for (const name of ["sh", "env", "npx"]) symlinkSync(programPath(name), join(folder, name));
  for (const tool of TOOLS) assert.notEqual(spawnSync(tool, ["--version"], { env: { PATH: folder } }).status, 0, tool);
  return folder;
}

// Costs and exports of an installed release: types of every export, bytes on disk, time of an import.

const MAX_INSTALLED_BYTES = 14e6;
const IMPORTS = 11;

/** Throws if the types of an export are not found or do not compile, for ES modules, CommonJS and bundlers. */
function checkTypes(project) {
  const { exports } = manifestOf(join(project, "node_modules/latentkit"));
  const names = Object.entries(exports).flatMap(([key, { types }]) =>
    // those declare matchers in a test runner, which the project has not
    types === undefined || key.startsWith("./testing/") ? [] : [`latentkit${key.slice(1)}`],
  );
  const types = join(project, "node_modules/@types");
  mkdirSync(types, { recursive: true });
  symlinkSync(join(root, "node_modules/@types/node"), join(types, "node"));
  const imports = names.map((name, index) => `import * as part${index} from "${name}";\n`).join("");
  const uses = `export const parts = [${names.map((_, index) => `Object.keys(part${index})`)}];\n`;
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const options = ["--noEmit", "--strict", "--target", "es2022", "--types", "node"];
  for (const [file, module, resolution] of [
    ["types.mts", "nodenext", "nodenext"],
    ["types.cts", "nodenext", "nodenext"],
    ["types.ts", "esnext", "bundler"],
  ]) {
    writeFileSync(join(project, file), `${imports}${uses}`);
    const how = ["--module", module, "--moduleResolution", resolution, "--skipLibCheck", "false"];
    run(process.execPath, [compiler, ...options, ...how, file], project);
  }
}

/** Throws if the installation without optional parts takes too much; says what it takes. */
function checkSize(project) {
  const bytes = bytesBelow(join(project, "node_modules"));
  const text = `${(bytes / 1e6).toFixed(1)} MB installed without optional parts`;
  assert.ok(bytes < MAX_INSTALLED_BYTES, `expected less than ${MAX_INSTALLED_BYTES / 1e6} MB, received ${text}`);
  return text;
}

/** Lengths of a folder's files, as npm counts a package. */
function bytesBelow(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((path) => lstatSync(join(folder, path)))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);
}

/** Sentence about the milliseconds that an import of latentkit and of sharp takes in a new process: medians of turns. */
function timeImports(project) {
  const modules = {
    latentkit: join(project, "node_modules/latentkit/dist/index.js"),
    sharp: fileURLToPath(import.meta.resolve("sharp")),
  };
  const times = { latentkit: [], sharp: [] };
  for (let turn = 0; turn < IMPORTS; turn++) {
    for (const [name, file] of Object.entries(modules)) {
      const program = `const start = performance.now(); await import(${JSON.stringify(pathToFileURL(file).href)});`;
      const print = "console.log(performance.now() - start);";
      times[name].push(Number(run(process.execPath, ["--input-type=module", "-e", program + print], project)));
    }
  }
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1].toFixed(0);
  return `imports in ${median(times.latentkit)} ms, sharp in ${median(times.sharp)} ms`;
}
