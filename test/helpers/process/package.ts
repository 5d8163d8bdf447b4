import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../folders.js";

const BUILD = join(root, "build");
const PREFIX = "package-";
const SCRIPT = pathToFileURL(join(root, "scripts/release/packages.mjs")).href;
/** Sources of the package. */
const SOURCES = ["dist", "bin", "examples", "package.json", "scripts/release"];

let made: string | undefined;

/**
 * The folder that users have of this checkout's package, with this checkout's native core: made once and kept in build.
 * Its processes and threads start three times as fast as those of the checkout, which open a file for each module.
 */
export function packageFolder(): string {
  made ??= make();
  return made;
}

/** The command line of the package, for `node`. */
export const program = (): string => join(packageFolder(), "bin/latentkit.mjs");

/** URL of a file of the package's `dist`. */
export const packaged = (path: string): string => pathToFileURL(join(packageFolder(), "dist", path)).href;

function make(): string {
  const newest = Math.max(...SOURCES.map((path) => newestChange(join(root, path))));
  const folder = join(BUILD, `${PREFIX}${Math.floor(newest)}`);
  if (!existsSync(folder)) build(folder);
  return join(folder, "latentkit");
}

function build(folder: string): void {
  const old = readdirSync(BUILD).filter((name) => /^package-\d+$/.test(name));
  // a run beside this one may make the same
  const unfinished = `${folder}-${process.pid}`;
  const options = JSON.stringify({ root, folder: unfinished, packages: [] });
  const code = `import { writeMainPackage } from ${JSON.stringify(SCRIPT)}; await writeMainPackage(${options});`;
  execFileSync(process.execPath, ["--input-type=module", "--eval", code]);
  mkdirSync(join(unfinished, "latentkit/build"));
  symlinkSync(join(BUILD, "Release"), join(unfinished, "latentkit/build/Release"));
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
  for (const name of old) rmSync(join(BUILD, name), { recursive: true, force: true });
}

/** Time of the last change of a file, or below a folder, in ms. */
function newestChange(path: string): number {
  const { mtimeMs } = statSync(path);
  const below = statSync(path).isDirectory() ? readdirSync(path).map((name) => newestChange(join(path, name))) : [];
  return Math.max(mtimeMs, ...below);
}
