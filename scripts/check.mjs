#!/usr/bin/env node
// npm run check: lint, types, licences of dependencies, layers, C++ format, C++ tests. Needs neither root nor Debian
// packages: what is not installed is skipped with a line that says so, and with CI=true refused.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { BuildError, buildNative } from "./native-build.mjs";
import { root, SetupError, setup } from "./setup.mjs";
import { runSteps } from "./steps.mjs";

const FORMAT = "scripts/check-format.mjs";
/** The set-up's own build, whose objects of the core the C++ tests share. */
const NATIVE = join(root, "build");
/** Programs without which the C++ tests cannot be built, by the name that their package has on Debian and Ubuntu. */
const COMPILER = { cmake: "cmake", "c++": "g++", make: "make", ctest: "cmake" };

/** @type {Record<string, () => boolean>} */
const STEPS = {
  "set-up, types of src and test": compile,
  lint: () => node("node_modules/@biomejs/biome/bin/biome", "ci", "--colors=off"),
  "types of the scripts": () => node("node_modules/typescript/bin/tsc", "-p", "tsconfig.scripts.json"),
  "licences, versions, known vulnerabilities": () => node("scripts/check-dependencies.mjs"),
  layers: () => node("scripts/check-layers.mjs"),
  "places of the blocks in docs/adding.md": () => node("scripts/check-adding.mjs", "--places"),
  "C++ format": () => !existsSync(join(root, FORMAT)) || node(FORMAT),
  "C++ tests": testNative,
};

runSteps(STEPS);

function compile() {
  return succeeds(() => setup({ tests: true }), SetupError);
}

/**
 * Prints the message of a failure of this type.
 * @param {() => unknown} action
 * @param {new (message: string) => Error} type
 */
function succeeds(action, type) {
  try {
    action();
    return true;
  } catch (error) {
    if (!(error instanceof type)) throw error;
    process.stderr.write(`${error.message}\n`);
    return false;
  }
}

function testNative() {
  for (const [program, name] of Object.entries(COMPILER)) {
    if (isInstalled(program)) continue;
    const isRequired = process.env.CI === "true";
    process.stderr.write(`${isRequired ? "" : "Skipped: "}${program} was not found (Debian and Ubuntu: ${name}).\n`);
    return !isRequired;
  }
  const jobs = String(availableParallelism());
  return (
    succeeds(() => buildNative({ tests: true }), BuildError) &&
    run("ctest", ["--test-dir", NATIVE, "--output-on-failure", "--parallel", jobs])
  );
}

/** @param {string} program */
function isInstalled(program) {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** @param {string[]} args */
function node(...args) {
  return run(process.execPath, args);
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {"inherit" | "ignore"} [stdout]
 */
function run(program, args, stdout = "inherit") {
  return spawnSync(program, args, { cwd: root, stdio: ["ignore", stdout, "inherit"] }).status === 0;
}
