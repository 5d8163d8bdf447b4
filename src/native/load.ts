import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { LatentkitError } from "../base/errors.js";
import { packageRoot, version } from "../base/package.js";
import { permissionHint } from "../base/permission.js";
import type { NativeBindings } from "./bindings.js";
import { checkEnvironment } from "./environment.js";
import { packageFile, platformPackage } from "./platform-package.js";

/** The native core and the path of its file. */
interface LoadedCore {
  readonly native: NativeBindings;
  readonly file: string;
}

let loaded: LoadedCore | undefined;

// decision 6
/**
 * The native core, loaded once for each thread. The environment variable LATENTKIT_NATIVE names another file.
 * Throws native.unavailable with the remedy, and usage.invalid for a wrong LATENTKIT_ISA or LATENTKIT_THREADS.
 */
export function loadNative(): NativeBindings {
  loaded ??= loadChecked();
  return loaded.native;
}

function loadChecked(): LoadedCore {
  checkEnvironment(process.env);
  return loadFirst(candidates(packageRoot, process.env.LATENTKIT_NATIVE));
}

/** Path of the module in use. */
export function nativeFile(): string {
  loaded ??= loadChecked();
  return loaded.file;
}

/**
 * Absolute paths where the module may lie: `override` alone, else a build from source below `root`, then the package of
 * this platform if it is installed.
 */
export function candidates(root: string, override?: string): string[] {
  if (override) return [resolve(override)];
  const packaged = packageFile(root, platformPackage(), "latentkit.node");
  return [
    join(root, "build/Release/latentkit.node"),
    join(root, "build/Debug/latentkit.node"),
    ...(packaged === undefined ? [] : [packaged]),
  ];
}

/** Loads the first file that exists and works. Throws native.unavailable. @internal */
export function loadFirst(files: readonly string[]): LoadedCore {
  const require = createRequire(import.meta.url);
  const failures: { file: string; cause: unknown }[] = [];
  for (const file of files) {
    try {
      if (!existsSync(file)) continue;
      return { native: require(file) as NativeBindings, file };
    } catch (cause) {
      failures.push({ file, cause });
    }
  }
  throw new LatentkitError("native.unavailable", explain(files, failures), {}, { cause: failures[0]?.cause });
}

function explain(files: readonly string[], failures: readonly { file: string; cause: unknown }[]): string {
  const machine = `${process.platform}-${process.arch}, Node ${process.versions.node}`;
  const reason =
    failures.length === 0
      ? `none of these files exists: ${files.join(", ")}; package ${platformPackage()} is not installed`
      : failures.map(({ file, cause }) => `${file}: ${cause instanceof Error ? cause.message : cause}`).join("; ");
  const sentence = `The native core could not be loaded on ${machine} (${reason}).`;
  // what the permission model denies, no installation mends
  return permissionHint(failures[0]?.cause) === undefined ? `${sentence} ${remedy()}` : sentence;
}

/** Sentence that says how to get a core for this machine: its package, if this version has one, or a build. */
function remedy(): string {
  const name = platformPackage();
  const { optionalDependencies = {} } = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8"));
  const build =
    'run "npm install --save-dev cmake-js node-addon-api", then "node node_modules/latentkit/scripts/native-build.mjs"';
  const compiler = "which needs a C++20 compiler and CMake 3.20";
  if (Object.hasOwn(optionalDependencies, name))
    return `Run "npm install ${name}@${version}"; or build it from source: ${build}, ${compiler}.`;
  return `In a checkout run "node scripts/native-build.mjs"; in a project ${build}, ${compiler}.`;
}
