// The platforms that have packages, and those that this machine can build for.
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

/** Cross compilers, by the platform they build for; each runs on Linux. */
const CROSS_COMPILERS = {
  "linux-arm64": {
    program: "aarch64-linux-gnu-g++",
    debianPackage: "g++-aarch64-linux-gnu",
    toolchain: fileURLToPath(new URL("linux-arm64.cmake", import.meta.url)),
  },
};

/** Name of the platform that this script runs on. */
export function ownPlatform() {
  const musl = process.platform === "linux" && !glibcVersion() ? "musl" : "";
  return `${process.platform}${musl}-${process.arch}`;
}

/** CMake's toolchain file for a platform, undefined for this machine's own. Throws where nothing here builds for it. */
export function toolchainOf(platform) {
  if (platform === ownPlatform()) return undefined;
  const cross = process.platform === "linux" ? CROSS_COMPILERS[platform] : undefined;
  if (cross === undefined) throw new BuildError(`Platform ${platform} cannot be built on ${ownPlatform()}.`);
  if (!onPath(cross.program))
    throw new BuildError(
      `${cross.program} was not found: apt-get install ${cross.debianPackage}, or leave ${platform} out with --platforms.`,
    );
  return cross.toolchain;
}

function glibcVersion() {
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return report.header.glibcVersionRuntime;
}
