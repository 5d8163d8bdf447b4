// Costs and exports of an installed release: types of every export, bytes on disk, time of an import.
import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { root } from "../setup.mjs";
import { run } from "./npm.mjs";
import { manifestOf } from "./packages.mjs";

const MAX_INSTALLED_BYTES = 14e6;
const IMPORTS = 11;

/** Throws where the types of an export are not found or do not compile, for ES modules, CommonJS and bundlers. */
export function checkTypes(project) {
  const { exports } = manifestOf(join(project, "node_modules/latentkit"));
  const names = Object.entries(exports).flatMap(([key, { types }]) =>
    // those declare matchers in a test runner, which the project has not
    types === undefined || key.startsWith("./testing/") ? [] : [`latentkit${key.slice(1)}`],
  );
  const types = join(project, "node_modules/@types");
  mkdirSync(types, { recursive: true });
  symlinkSync(join(root, "node_modules/@types/node"), join(types, "node"));
  const imports = names.map((name, index) => `import * as part${index} from "${name}";\n`).join("");
  const uses = `export const parts = [${names.map((_, index) => `Object.keys(part${index})`)}];\n`;
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const options = ["--noEmit", "--strict", "--target", "es2022", "--types", "node"];
  for (const [file, module, resolution] of [
    ["types.mts", "nodenext", "nodenext"],
    ["types.cts", "nodenext", "nodenext"],
    ["types.ts", "esnext", "bundler"],
  ]) {
    writeFileSync(join(project, file), `${imports}${uses}`);
    const how = ["--module", module, "--moduleResolution", resolution, "--skipLibCheck", "false"];
    run(process.execPath, [compiler, ...options, ...how, file], project);
  }
}

/** Throws where the installation without optional parts takes too much; says what it takes. */
export function checkSize(project) {
  const bytes = bytesBelow(join(project, "node_modules"));
  const text = `${(bytes / 1e6).toFixed(1)} MB installed without optional parts`;
  assert.ok(bytes < MAX_INSTALLED_BYTES, `expected less than ${MAX_INSTALLED_BYTES / 1e6} MB, received ${text}`);
  return text;
}

/** Lengths of a folder's files, as npm counts a package. */
function bytesBelow(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((path) => lstatSync(join(folder, path)))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);
}

/** Sentence about the milliseconds that an import of latentkit and of sharp takes in a new process: medians of turns. */
export function timeImports(project) {
  const modules = {
    latentkit: join(project, "node_modules/latentkit/dist/index.js"),
    sharp: fileURLToPath(import.meta.resolve("sharp")),
  };
  const times = { latentkit: [], sharp: [] };
  for (let turn = 0; turn < IMPORTS; turn++) {
    for (const [name, file] of Object.entries(modules)) {
      const program = `const start = performance.now(); await import(${JSON.stringify(pathToFileURL(file).href)});`;
      const print = "console.log(performance.now() - start);";
      times[name].push(Number(run(process.execPath, ["--input-type=module", "-e", program + print], project)));
    }
  }
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1].toFixed(0);
  return `imports in ${median(times.latentkit)} ms, sharp in ${median(times.sharp)} ms`;
}
