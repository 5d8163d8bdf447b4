import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { LatentkitError } from "../base/errors.js";
import { packageRoot } from "../base/package.js";
import type { NativeBindings } from "./bindings.js";
import { checkEnvironment } from "./environment.js";

let loaded: NativeBindings | undefined;

// decision 6
/**
 * The native core, loaded once for each thread. The environment variable LATENTKIT_NATIVE names another file.
 * Throws native.unavailable with the remedy, and usage.invalid for a wrong LATENTKIT_ISA or LATENTKIT_THREADS.
 */
export function loadNative(): NativeBindings {
  loaded ??= loadChecked();
  return loaded;
}

function loadChecked(): NativeBindings {
  checkEnvironment(process.env);
  return loadFirst(candidates(packageRoot, process.env.LATENTKIT_NATIVE));
}

/** Path of the module in use. */
export function nativeFile(): string {
  loadNative();
  return candidates(packageRoot, process.env.LATENTKIT_NATIVE).find((file) => existsSync(file))!;
}

/** Absolute paths where the module may lie: `override` alone, else a build of this checkout, then the prebuild. */
export function candidates(root: string, override?: string): string[] {
  if (override) return [resolve(override)];
  return [
    join(root, "build/Release/latentkit.node"),
    join(root, "build/Debug/latentkit.node"),
    join(root, `prebuilds/${process.platform}-${process.arch}/latentkit.node`),
  ];
}

/** Loads the first file that exists and works. Throws native.unavailable. @internal */
export function loadFirst(files: readonly string[]): NativeBindings {
  const require = createRequire(import.meta.url);
  const failures: { file: string; cause: unknown }[] = [];
  for (const file of files) {
    if (!existsSync(file)) continue;
    try {
      return require(file) as NativeBindings;
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
      ? `none of these files exists: ${files.join(", ")}`
      : failures.map(({ file, cause }) => `${file}: ${cause instanceof Error ? cause.message : cause}`).join("; ");
  return (
    `The native core could not be loaded on ${machine} (${reason}). In a checkout run "node scripts/native-build.mjs"; ` +
    'in a project run "npm install --save-dev cmake-js node-addon-api", then ' +
    '"node node_modules/latentkit/scripts/native-build.mjs". Both need a C++20 compiler and CMake 3.20.'
  );
}
