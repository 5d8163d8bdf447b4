import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** musl's library by its own name or by its loader's, which may be a link to it; glibc's is libc.so.6. */
const MUSL = /\/(?:ld-musl-[^/\n]*|libc\.so)$/m;

// decision 289
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

/** Path of a file of an installed package, as Node finds it from the folder `root`; undefined where there is none. */
export function packageFile(root: string, name: string, file: string): string | undefined {
  try {
    return createRequire(join(root, "package.json")).resolve(`${name}/${file}`);
  } catch {
    return undefined;
  }
}

/** Files that are mapped into this process; empty where the system does not tell. */
function mapsOfProcess(): string {
  try {
    return readFileSync("/proc/self/maps", "latin1");
  } catch {
    return "";
  }
}
