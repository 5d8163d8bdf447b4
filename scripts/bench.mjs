#!/usr/bin/env node
// npm run bench: set up, then time latentkit beside its peers; bench/run.mjs has the arguments.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { orExplain, root, setup } from "./setup.mjs";

orExplain(setup);

const args = [join(root, "bench/run.mjs"), ...process.argv.slice(2)];
process.exit(spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1);
