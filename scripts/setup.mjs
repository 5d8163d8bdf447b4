#!/usr/bin/env node
// Brings a checkout to the point where it runs: packages, compiled TypeScript, native core. Needs nothing but Node.
// Compares the lockfile with the installed packages by version: a checkout resets file times.
// Runs `npm ci --ignore-scripts` and builds the core itself, so a compiler's complaint is shown once and in full.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
/** As `engines` says: from these on `require` takes ES modules without a warning. */
const OLDEST_NODES = { 20: 19, 22: 13 };

/** Folders of src with data that the compiled code reads from beside it. */
const DATA = ["clip-vocab", "qwen-vocab", "t5-vocab"].map((name) => `host/checkpoint/tokenizer/${name}`);

/** Folder of the service's page, in src and in dist: another program builds it. */
const PAGE = "service/web/page";

const logLine = (line) => process.stderr.write(`${line}\n`);

/** A step that failed; the message is for a person. */
export class SetupError extends Error {}

/** Installs and builds what is missing or older than its sources. Prints a line for each step it has to do. */
export function setup({ tests = false, log = logLine } = {}) {
  checkNode(process.versions.node);
  if (!packagesMatch(root)) {
    log("Installing packages (npm ci) …");
    // without install scripts: the native core is built below, with its output shown when it fails
    npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
  }
  compile({ project: "tsconfig.json", sources: ["src", "tsconfig.json"], output: "dist", data: DATA, log });
  buildPage(log);
  const build = [join(root, "scripts/native-build.mjs"), ...(tests ? ["--cuda-test"] : [])];
  run("Building the native core", process.execPath, build, { stdio: "inherit" });
  if (tests) {
    buildSqlite(log);
    compile({ project: "tsconfig.test.json", sources: ["test", "tsconfig.test.json"], output: "build/test", log });
  }
}

/** Throws where `engines` does not allow this version. */
export function checkNode(version) {
  const [major, minor] = version.split(".").map(Number);
  if (major > 22 || minor >= OLDEST_NODES[major]) return;
  throw new SetupError(`Node 20.19, 22.13 or newer is needed, this is ${version}.`);
}

/**
 * better-sqlite3 stands in where Node has no SQLite of its own. Where it cannot be built, `latentkit serve` says what to
 * install, and the tests of that store skip.
 */
export function buildSqlite(log = logLine) {
  const folder = join(root, "node_modules/better-sqlite3");
  if (isBuiltin("node:sqlite") || !existsSync(folder)) return;
  if (existsSync(join(folder, "build/Release/better_sqlite3.node"))) return;
  log("Building better-sqlite3 for the hook service (a minute or two) …");
  try {
    npm(["rebuild", "better-sqlite3", "--ignore-scripts=false", "--no-audit", "--no-fund"]);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    log(`${error.message}\nGoing on without it: the hook service has no SQLite store then.`);
  }
}

/** Whether every package of the lockfile for this machine is installed in its version. */
export function packagesMatch(folder) {
  const installed = join(folder, "node_modules/.package-lock.json");
  if (!existsSync(installed)) return false;
  const locked = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")).packages;
  const present = JSON.parse(readFileSync(installed, "utf8")).packages;
  return Object.entries(locked).every(
    ([path, entry]) =>
      path === "" || (present[path] === undefined ? entry.optional : present[path].version === entry.version),
  );
}

/** Time of the last change below these files and folders, in ms; 0 if there is nothing. */
export function newestChange(paths) {
  let newest = 0;
  for (const path of paths) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    newest = Math.max(newest, stats.mtimeMs);
    if (stats.isDirectory()) newest = Math.max(newest, newestChange(readdirSync(path).map((name) => join(path, name))));
  }
  return newest;
}

/**
 * Checks the types of the service's page and builds it.
 *
 * @param {(line: string) => void} log
 */
function buildPage(log) {
  const built = join(root, "dist", PAGE, "index.html");
  // its types come from the service
  const service = ["src/service/web", "src/service/hooks/http"];
  const sources = [...service, "scripts/build-page.mjs", "node_modules/.package-lock.json"];
  if (newestChange([built]) >= newestChange(sources.map((path) => join(root, path)))) return;
  log("Building the page …");
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  run("Checking the page's types", process.execPath, [compiler, "-p", join(root, "src", PAGE)]);
  run("Building the page", process.execPath, [join(root, "scripts/build-page.mjs")]);
}

/** @param {{ project: string, sources: string[], output: string, data?: string[], log: (line: string) => void }} step */
function compile({ project, sources, output, data = [], log }) {
  const stamp = join(root, "build/stamps", `${project}.stamp`);
  const built = existsSync(join(root, output)) ? newestChange([stamp]) : 0;
  const changed = newestChange([...sources, "node_modules/.package-lock.json"].map((path) => join(root, path)));
  if (built >= changed) return;
  log(`Compiling ${sources[0]} …`);
  // tsc's incremental record would keep it from writing outputs that were deleted
  const { tsBuildInfoFile } = JSON.parse(readFileSync(join(root, project), "utf8")).compilerOptions;
  rmSync(join(root, tsBuildInfoFile), { force: true });
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  run("Compiling TypeScript", process.execPath, [compiler, "-p", join(root, project)]);
  for (const folder of data) cpSync(join(root, sources[0], folder), join(root, output, folder), { recursive: true });
  removeOrphans(join(root, sources[0]), join(root, output));
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, "");
}

/** Outputs whose source is gone would still run as tests and still be packed. */
export function removeOrphans(sources, outputs) {
  for (const entry of readdirSync(outputs, { recursive: true, withFileTypes: true })) {
    const folder = relative(outputs, entry.parentPath ?? entry.path);
    if (folder.split(sep).join("/").startsWith(PAGE)) continue;
    const source = join(sources, folder, entry.name.replace(/(\.d\.ts|\.js)$/, ".ts"));
    if (entry.isFile() && !existsSync(source)) rmSync(join(outputs, folder, entry.name));
  }
}

function npm(args) {
  // under "npm start" this is npm's own program; it needs no shell, on Windows too
  const program = process.env.npm_execpath;
  const viaNode = program !== undefined && /\.[cm]?js$/.test(program);
  const what = `npm ${args[0]}`;
  if (viaNode) run(what, process.execPath, [program, ...args]);
  else run(what, process.platform === "win32" ? "npm.cmd" : "npm", args);
}

/**
 * @param {string} what
 * @param {string} program
 * @param {string[]} args
 * @param {{ stdio?: "pipe" | "inherit" }} [options]
 */
function run(what, program, args, { stdio = "pipe" } = {}) {
  const done = spawnSync(program, args, {
    cwd: root,
    stdio: ["ignore", stdio === "pipe" ? "pipe" : 2, stdio],
    encoding: "utf8",
  });
  if (done.status === 0) return;
  const why = done.error?.message ?? `exit code ${done.status ?? done.signal}`;
  throw new SetupError(
    `${done.stdout ?? ""}${done.stderr ?? ""}${what} failed (${why}). Fix the error above and run this again.`,
  );
}

/** Runs a script's main part, with one clear message instead of a stack trace when the set-up fails. */
export function orExplain(main) {
  try {
    return main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return process.exit(1);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  orExplain(() => setup({ tests: process.argv.includes("--tests") }));
}
