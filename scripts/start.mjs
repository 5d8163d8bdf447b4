#!/usr/bin/env node
// npm start: set up, then render the first example and say what to try next. Further arguments go to `latentkit render`.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { orExplain, root, setup } from "./setup.mjs";

orExplain(setup);
const graph = join(root, "examples/first-light.json");
// the output nodes, and the pose editor, which has no output that could lead to it
const args = ["render", graph, "--targets", "11,18,19,20", ...process.argv.slice(2)];
const done = spawnSync(process.execPath, [join(root, "bin/latentkit.mjs"), ...args], { stdio: "inherit" });
if (done.status === 0) {
  const next = 'npx latentkit render examples/text-to-image.json --set prompt="a yellow moon over a purple sea"';
  process.stderr.write(`Next: ${next}\n`);
}
process.exit(done.status ?? 1);
