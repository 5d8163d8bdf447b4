#!/usr/bin/env node
// npm start: set up, then render the first example. Further arguments go to `latentkit render`.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { buildSqlite, orExplain, root, setup } from "./setup.mjs";

orExplain(setup);
const graph = join(root, "examples/first-light.json");
// the output nodes, and the pose editor, which has no output that could lead to it
const args = ["render", graph, "--targets", "11,18,19,20", ...process.argv.slice(2)];
const done = spawnSync(process.execPath, [join(root, "bin/latentkit.mjs"), ...args], { stdio: "inherit" });
// the pictures do not wait for what only `latentkit serve` needs
if (done.status === 0) buildSqlite();
process.exit(done.status ?? 1);
