#!/usr/bin/env node
// Kills a batch with SIGKILL at random moments and resumes it each time; the files must be those of a quiet run.
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./setup.mjs";
import { killAndResume, runBatch } from "./soak-batch/killed-batch.mjs";

const [items, kills] = [Number(process.argv[2] ?? 500), Number(process.argv[3] ?? 50)];
const graph = join(root, "test/graphs/inject-noise-to-latent.json");
const folder = mkdtempSync(join(tmpdir(), "latentkit-soak-"));
function hashes(out) {
  const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .filter((path) => !path.endsWith(".jsonl"));
  return Object.fromEntries(
    paths.sort().map((path) => [path.slice(out.length), createHash("sha256").update(readFileSync(path)).digest("hex")]),
  );
}

try {
  const [quiet, killed] = [join(folder, "quiet"), join(folder, "killed")];
  const whole = await runBatch([graph, String(items), quiet]);
  if (whole.code !== 0) throw new Error("The quiet run failed.");
  const lives = await killAndResume([graph, String(items), killed], kills, whole.ms);
  const [expected, actual] = [hashes(quiet), hashes(killed)];
  const wrong = [...new Set([...Object.keys(expected), ...Object.keys(actual)])].filter(
    (path) => expected[path] !== actual[path],
  );
  console.log(`${lives}, ${Object.keys(actual).length} files.`);
  if (wrong.length > 0) throw new Error(`${wrong.length} files differ, first ${wrong.slice(0, 5).join(", ")}.`);
  if (Object.keys(actual).length !== items) throw new Error(`Expected ${items} files.`);
  console.log("Same files as an uninterrupted run; no temporary files left.");
} finally {
  rmSync(folder, { recursive: true, force: true });
}
