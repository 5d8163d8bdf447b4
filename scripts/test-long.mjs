#!/usr/bin/env node
// npm run test:long: what takes too long for each change. Every step runs, whatever the others did.
import { spawnSync } from "node:child_process";
import { root } from "./setup.mjs";
import { runSteps } from "./steps.mjs";

const DAY_MS = 86_400_000;
/** Seed of the damaged files: others each night, and a finding names its own. */
const seed = String(Math.floor(Date.now() / DAY_MS));
/** Attacks that need neither much time nor much memory of the machine. */
const ATTACKS = "headers,texts,readers,pipelining,graphs,uploads,websockets,model-files";

/** @param {string[]} args */
const node = (...args) => {
  return () => spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" }).status === 0;
};

runSteps({
  "tests that take long": node("scripts/test.mjs", "--long"),
  sanitizers: node("scripts/sanitize.mjs"),
  "CUDA library": node("scripts/check-cuda.mjs"),
  WebGPU: node("scripts/check-webgpu.mjs"),
  "packed tarball": node("scripts/check-pack.mjs"),
  "newest long-term Node": node("scripts/check-nodes.mjs", "--quick", "24"),
  "docs/adding.md": node(
    "scripts/check-adding.mjs",
    "--sample",
    "A node",
    "An operation",
    "An option",
    "A model family",
    "A sampler",
    "An endpoint",
  ),
  "soak: batch": node("scripts/soak-batch.mjs", "200", "6"),
  "soak: photos": node("scripts/soak-photos.mjs", "400", "4"),
  "soak: SQLite": node("scripts/soak-cluster.mjs", "--store", "sqlite", "--times", "12"),
  "soak: PostgreSQL": node("scripts/soak-cluster.mjs", "--times", "8", "--database", "1"),
  "soak: LoRAs": node("scripts/soak-loras.mjs", "60"),
  "soak: runtime": node("scripts/soak-runtime.mjs", "20"),
  "fuzz: pictures": node("scripts/fuzz-pictures.mjs", "--minutes", "1", "--seed", seed),
  "fuzz: workflows": node("scripts/fuzz-workflows.mjs", "--minutes", "1", "--seed", seed),
  "fuzz: models": node("scripts/fuzz-models.mjs", "--minutes", "3", "--seed", seed),
  "fuzz: native core": node("scripts/fuzz-native.mjs", "--seconds", "60"),
  attacks: node("scripts/attack-service.mjs", "--only", ATTACKS),
});
