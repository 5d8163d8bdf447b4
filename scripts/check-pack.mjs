#!/usr/bin/env node
// Packs the package, installs the tarball in an empty project without scripts, compiler or CMake, and renders there.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const TOOLS = ["cc", "c++", "gcc", "g++", "clang", "make", "ninja", "cmake"];
const PNG_START = "89504e470d0a1a0a";

const scratch = mkdtempSync(join(tmpdir(), "latentkit-pack-"));
try {
  const tarball = pack();
  const project = join(scratch, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true }));
  const env = { ...process.env, PATH: bareBin(), LATENTKIT_NATIVE: "" };
  npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", tarball], project, env);
  checkPackages(project);
  checkModule(project, env);
  checkReadme(project, env);
  // scripts allowed: the prebuild loads, so nothing is compiled and nothing fails
  npm(["rebuild", "latentkit"], project, env);
  process.stderr.write("The packed package installs and renders without scripts, compiler and CMake.\n");
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function pack() {
  // the plain command, as people type it: "prepack" must build what is missing
  const [{ filename, files }] = JSON.parse(npm(["pack", "--json", "--pack-destination", scratch], root));
  const paths = files.map(({ path }) => path);
  for (const path of [
    `prebuilds/${process.platform}-${process.arch}/latentkit.node`,
    "dist/index.js",
    "dist/index.d.ts",
    "bin/latentkit.mjs",
    "CMakeLists.txt",
    "bindings.gyp",
    "native/include/engine.h",
    "native/include/engine_cuda.h",
    "native/shared/gaussian.h",
    "native/cuda/kernels/kernels.cu",
    "native/cuda/exports.map",
    "native/third_party/blake3/LICENSE",
    "native/third_party/libdeflate/COPYING",
    "scripts/install.mjs",
    "scripts/native-build.mjs",
    "examples/first-light.json",
    "examples/items.csv",
    "dist/cli/commands/init.js",
    "dist/testing.js",
    "dist/service/web/page/index.html",
    "dist/testing.d.ts",
    "dist/host/checkpoint/tokenizer/clip-vocab/merges.txt.gz",
    "dist/host/checkpoint/tokenizer/clip-vocab/LICENSE",
    "LICENSE",
    "README.md",
  ])
    assert.ok(paths.includes(path), `${path} is missing from the package`);
  // the CUDA library is built where there is a compiler for it
  const cuda = `prebuilds/${process.platform}-${process.arch}/latentkit_cuda.so`;
  if (existsSync(join(root, "build/prebuild/build/Release/latentkit_cuda.so")))
    assert.ok(paths.includes(cuda), `${cuda} is missing from the package`);
  const stray = paths.filter((path) => /^(src|test|build|bench|\.ci|node_modules)\//.test(path));
  assert.deepEqual(stray, [], "these do not belong into the package");
  return join(scratch, filename);
}

/** Tools of a build from source are not installed; who builds is told to install them. */
function checkPackages(project) {
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

function checkModule(project, env) {
  const result = `JSON.stringify([typeof m.randn, m.randn([1, 4, 2, 2], { seed: 42n }).data.length, m.device().isa.length > 0])`;
  const required = node(["-e", `const m = require("latentkit"); console.log(${result})`], project, env);
  const imported = node(
    ["--input-type=module", "-e", `import * as m from "latentkit"; console.log(${result})`],
    project,
    env,
  );
  assert.equal(required.trim(), '["function",16,true]');
  assert.equal(imported, required);
  const testing = node(["-p", 'typeof require("latentkit/testing").expectRender'], project, env);
  assert.equal(testing.trim(), "function");
}

/** The commands of README.md's first picture, word by word, but for those that need a registry. */
function checkReadme(project, env) {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const section = readme.slice(readme.indexOf("\n## First picture\n"), readme.indexOf("\n## In a program\n"));
  const blocks = [...section.matchAll(/(?:^<!-- (not run)[^\n]*\n)?^```bash\n([\s\S]*?)^```$/gm)].flatMap(
    ([, isNotRun, code]) => (isNotRun === undefined ? [code] : []),
  );
  assert.ok(blocks.length >= 2, "README.md has no commands for a first picture");
  for (const code of blocks) {
    const done = spawnSync("sh", ["-eu", "-c", code], { cwd: project, env, encoding: "utf8" });
    assert.equal(done.status, 0, `${code}\n${done.stdout}${done.stderr}`);
  }
  const pictures = readdirSync(join(project, "out"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".png"),
  );
  assert.ok(pictures.length > 0, "render wrote no PNG");
  for (const picture of pictures) {
    const file = readFileSync(join(project, "out", picture));
    assert.equal(file.subarray(0, 8).toString("hex"), PNG_START, `${picture} is no PNG`);
  }
  const resolved = node(["-p", 'require.resolve("latentkit/examples/noise.json")'], project, env);
  assert.ok(existsSync(resolved.trim()), "latentkit/examples/* is not reachable");
}

/** A folder for PATH with node and a shell, and nothing that compiles. */
function bareBin() {
  const folder = join(scratch, "bin");
  mkdirSync(folder);
  symlinkSync(process.execPath, join(folder, "node"));
  for (const name of ["sh", "env", "npx"]) symlinkSync(find(name), join(folder, name));
  for (const tool of TOOLS) assert.notEqual(spawnSync(tool, ["--version"], { env: { PATH: folder } }).status, 0, tool);
  return folder;
}

function find(program) {
  for (const folder of String(process.env.PATH).split(delimiter)) {
    try {
      return realpathSync(join(folder, program));
    } catch (error) {
      if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw error;
    }
  }
  throw new Error(`${program} was not found on PATH.`);
}

function npm(args, cwd, env = process.env) {
  const npmCli = process.env.npm_execpath ?? join(dirname(find("npm")), "npm-cli.js");
  return node([npmCli, ...args], cwd, env);
}

function node(args, cwd, env) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd,
    env,
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  assert.equal(status, 0, `node ${args.join(" ")}\n${stdout}${stderr}`);
  return stdout;
}
