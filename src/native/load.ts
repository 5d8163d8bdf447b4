import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { LatentkitError, messageOf, permissionHint, valueError } from "../base/errors.js";
import { packageRoot, packageVersion } from "../base/package.js";
import type { NativeBindings } from "./bindings.js";

/** The native core and the path of its file. */
interface LoadedCore {
  readonly native: NativeBindings;
  readonly file: string;
}

let loaded: LoadedCore | undefined;

// decisions: Nothing is compiled at installation
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
 * Absolute paths where the module may lie: only `override` if it is set, else a build from source below `root`, then the
 * package of this platform if it is installed.
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
      : failures.map(({ file, cause }) => `${file}: ${messageOf(cause)}`).join("; ");
  const sentence = `The native core could not be loaded on ${machine} (${reason}).`;
  // an installation cannot mend what the permission model denies
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
    return `Run "npm install ${name}@${packageVersion()}"; or build it from source: ${build}, ${compiler}.`;
  return `In a checkout run "node scripts/native-build.mjs"; in a project ${build}, ${compiler}.`;
}

/** musl's library by its own name or by its loader's, which may be a link to it; glibc's is libc.so.6. */
const MUSL = /\/(?:ld-musl-[^/\n]*|libc\.so)$/m;

// The name follows from the C library that the process has mapped: Node's report takes 5 ms and may look up names.
/**
 * Name of the package that holds the native core of this machine, such as `@latentkit/linux-x64`; `linuxmusl` is Linux
 * with musl as its C library, which is loaded into every process that uses it.
 */
export function platformPackage(
  { platform, arch } = process as { platform: string; arch: string },
  loadedFiles = platform === "linux" ? mapsOfProcess() : "",
): string {
  return `@latentkit/${platform}${MUSL.test(loadedFiles) ? "musl" : ""}-${arch}`;
}

/** Path of a file of an installed package, as Node finds it from the folder `root`; undefined if there is none. */
export function packageFile(root: string, name: string, file: string): string | undefined {
  try {
    return createRequire(join(root, "package.json")).resolve(`${name}/${file}`);
  } catch {
    return undefined;
  }
}

/** Files that are mapped into this process; empty on a system that does not tell. */
function mapsOfProcess(): string {
  try {
    return readFileSync("/proc/self/maps", "latin1");
  } catch {
    return "";
  }
}

const MAX_THREADS = 256;

/** Variables that the native core reads when it is loaded; it would ignore a wrong value. */
const VARIABLES: Readonly<Record<string, readonly [expected: string, holds: (text: string) => boolean]>> = {
  LATENTKIT_ISA: ["avx512, avx2 or baseline", (text) => ["avx512", "avx2", "baseline"].includes(text)],
  LATENTKIT_THREADS: [
    `a whole number from 1 to ${MAX_THREADS}`,
    (text) => /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_THREADS,
  ],
};

/** Throws usage.invalid for the first variable of the native core with a value that it would ignore. @internal */
export function checkEnvironment(env: Readonly<Record<string, string | undefined>>): void {
  for (const [name, [expected, holds]] of Object.entries(VARIABLES)) {
    const text = env[name];
    if (text && !holds(text)) throw valueError("usage.invalid", name, expected, text);
  }
}
