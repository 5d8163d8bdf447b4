// The platforms that have packages, and those that this machine can build for.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { BuildError, onPath } from "../native-build.mjs";

/** Name of each platform package, without its scope, and what npm compares with the machine that installs. */
export const PLATFORMS = {
  "linux-x64": { os: "linux", cpu: "x64", libc: "glibc" },
  "linux-arm64": { os: "linux", cpu: "arm64", libc: "glibc" },
  "linuxmusl-x64": { os: "linux", cpu: "x64", libc: "musl" },
  "linuxmusl-arm64": { os: "linux", cpu: "arm64", libc: "musl" },
  "darwin-arm64": { os: "darwin", cpu: "arm64" },
  "darwin-x64": { os: "darwin", cpu: "x64" },
  "win32-x64": { os: "win32", cpu: "x64" },
};

/** Oldest version of glibc on which the packages for Linux load. */
export const OLDEST_GLIBC = "2.34";

/**
 * Cross compilers of Debian 12 on x64, by the platform they build for: their program, other files that they need, and how
 * to get both.
 * @type {Record<string, { program: string, file?: string, install: string }>}
 */
const CROSS_COMPILERS = {
  "linux-arm64": { program: "aarch64-linux-gnu-g++", install: "apt-get install g++-aarch64-linux-gnu" },
  "linuxmusl-x64": {
    program: "x86_64-linux-gnu-g++",
    file: "/lib/x86_64-linux-musl/libc.so",
    install: "apt-get install g++ musl",
  },
  "linuxmusl-arm64": {
    program: "aarch64-linux-gnu-g++",
    file: "/lib/aarch64-linux-musl/libc.so",
    install: "dpkg --add-architecture arm64 && apt-get update && apt-get install g++-aarch64-linux-gnu musl:arm64",
  },
  "win32-x64": { program: "x86_64-w64-mingw32-g++-posix", install: "apt-get install g++-mingw-w64-x86-64-posix" },
};

/** Name of the platform that this script runs on. */
export function ownPlatform() {
  const musl = process.platform === "linux" && !glibcVersion() ? "musl" : "";
  return `${process.platform}${musl}-${process.arch}`;
}

/** Platforms that can be built on this machine, its own first, if the compilers were installed. */
export function buildablePlatforms() {
  return ownPlatform() === "linux-x64" ? ["linux-x64", ...Object.keys(CROSS_COMPILERS)] : [ownPlatform()];
}

/** CMake's toolchain file for a platform, undefined for this machine's own. Throws where nothing here builds for it. */
export function toolchainOf(platform) {
  if (platform === ownPlatform()) return undefined;
  if (!buildablePlatforms().includes(platform))
    throw new BuildError(`Platform ${platform} cannot be built on ${ownPlatform()}.`);
  const { program, file, install } = CROSS_COMPILERS[platform];
  const missing = [...(onPath(program) ? [] : [program]), ...(file === undefined || existsSync(file) ? [] : [file])];
  if (missing.length > 0)
    throw new BuildError(
      `${missing.join(" and ")} was not found: ${install}, or leave ${platform} out with --platforms.`,
    );
  return fileURLToPath(new URL(`toolchains/${platform}.cmake`, import.meta.url));
}

/** File of musl's C library for a platform that is built for it here; undefined for others. */
export function muslLibrary(platform) {
  const isCrossBuilt = platform.startsWith("linuxmusl-") && platform !== ownPlatform();
  return isCrossBuilt ? CROSS_COMPILERS[platform]?.file : undefined;
}

function glibcVersion() {
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return report.header.glibcVersionRuntime;
}
