#!/usr/bin/env node
// Compares what other versions of Node compute with the recorded hashes, each installed from npm into a temporary folder:
//   node scripts/check-nodes.mjs [22 24 26]
// The checkout must be built.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./setup.mjs";

const named = process.argv.slice(2);
const versions = named.length > 0 ? named : ["22", "24", "26"];
const folder = mkdtempSync(join(tmpdir(), "latentkit-nodes-"));
try {
  for (const version of versions) {
    const own = `node-${process.platform}-${process.arch}`;
    writeFileSync(join(folder, "package.json"), "{}");
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", `${own}@${version}`], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
    const program = join(folder, "node_modules", own, "bin/node");
    const command = [join(root, "bin/latentkit.mjs"), "doctor", "--reproducible"];
    const { status, stdout, stderr } = spawnSync(program, command, { encoding: "utf8" });
    process.stdout.write(stdout);
    // a warning of Node among them would be a fault too
    if (status !== 0 || stderr !== "") throw new Error(`Node ${version} differs, or says something:\n${stderr}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
