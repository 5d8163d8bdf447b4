#!/usr/bin/env node
// Damages the editor's files of test/graphs/workflows and converts them: nothing but a LatentkitError may come out, and
// soon. node scripts/fuzz-workflows.mjs [--minutes 1] [--seed 1]
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { convertWorkflow, LatentkitError } from "latentkit";
import { printJson } from "#src/io/json/print.js";
import { seededRandom } from "./seeded-random.mjs";
import { root } from "./setup.mjs";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "1" }, seed: { type: "string", default: "1" } },
});
/** Most processor time for one of these small files. */
const MAX_MS = 1000;
const folder = join(root, "test/graphs/workflows");
const files = readdirSync(folder).filter((name) => !name.endsWith(".api.json"));
const texts = files.map((name) => readFileSync(join(folder, name), "utf8"));
const end = Date.now() + Number(values.minutes) * 60_000;
const first = Number(values.seed);
const foreign = [
  null,
  true,
  -1,
  0,
  1e300,
  "",
  "*",
  "KSampler",
  "Reroute",
  "GetNode",
  "workflow>x",
  [],
  {},
  [[]],
  "-10",
  "-20",
];

let [converted, refused, seed] = [0, 0, first];
for (; seed === first || Date.now() < end; seed++) {
  const next = seededRandom(seed);
  const workflow = JSON.parse(texts[next(texts.length)]);
  for (let k = 1 + next(6); k > 0; k--) damage(workflow, next);
  const before = process.cpuUsage();
  try {
    printJson(convertWorkflow(next(2) === 0 ? workflow : JSON.stringify(workflow)));
    converted++;
  } catch (error) {
    if (!(error instanceof LatentkitError)) fail(seed, error);
    if (/[\n\r]/.test(error.message) || error.message.length > 2000) fail(seed, error);
    refused++;
  }
  const { user, system } = process.cpuUsage(before);
  if ((user + system) / 1000 > MAX_MS) fail(seed, new Error("took too long"));
}
console.log(
  `${seed - first} damaged files from seed ${first}: ${converted} converted, ${refused} refused, no finding.`,
);

/**
 * @param {number} seed
 * @param {unknown} error
 */
function fail(seed, error) {
  console.error(`seed ${seed}:`, error);
  process.exit(1);
}

/**
 * Replaces, removes, doubles or swaps a value somewhere.
 *
 * @param {any} root
 * @param {(n: number) => number} next
 */
function damage(root, next) {
  let holder = root;
  for (let depth = next(8); depth > 0; depth--) {
    const inner = Object.values(holder).filter((value) => typeof value === "object" && value !== null);
    if (inner.length === 0) break;
    holder = inner[next(inner.length)];
  }
  const keys = Object.keys(holder);
  if (keys.length === 0) return;
  const [key, other] = [keys[next(keys.length)], keys[next(keys.length)]];
  const kind = next(5);
  if (kind === 0) holder[key] = structuredClone(foreign[next(foreign.length)]);
  else if (kind === 1) delete holder[key];
  else if (kind === 2) holder[key] = structuredClone(holder[other]);
  else if (kind === 3) [holder[key], holder[other]] = [holder[other], holder[key]];
  else if (typeof holder[key] === "number") holder[key] = next(90) - 25;
}
